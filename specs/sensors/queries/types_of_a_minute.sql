-- What each type of sensor measured in the last minute.
select sensor_type, count(*) as readings, avg(value) as mean, min(value) as least, max(value) as most
from sensors.readings
where "timestamp" > now() - interval '1 minute'
group by sensor_type
order by sensor_type
