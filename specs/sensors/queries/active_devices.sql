-- The devices that have sent a reading in the last 30 seconds.
select device_id, count(*) as readings, max("timestamp") as newest
from sensors.readings
where "timestamp" > now() - interval '30 seconds'
group by device_id
order by device_id
