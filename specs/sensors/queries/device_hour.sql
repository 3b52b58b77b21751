-- The readings of one device in the current hour.
select "timestamp", sensor_type, value, unit
from sensors.readings
where device_id = 'device_07' and "timestamp" >= date_trunc('hour', now())
order by "timestamp"
