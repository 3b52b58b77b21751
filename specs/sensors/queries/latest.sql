-- The latest 100 readings of the last five minutes, with their places.
select "timestamp", device_id, sensor_type, value, unit, location.building, location.floor, location.zone
from sensors.readings
where "timestamp" > now() - interval '5 minutes'
order by "timestamp" desc
limit 100
