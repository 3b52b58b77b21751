-- The mean of each type of sensor in each building, today.
select building, sensor_type, count(*) as readings, avg(value) as mean
from sensors.readings
where "timestamp" >= date_trunc('day', now())
group by building, sensor_type
order by building, sensor_type
