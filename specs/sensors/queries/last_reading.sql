-- The last reading of one device.
select "timestamp", sensor_type, value, unit, location.building, location.floor, location.zone
from sensors.readings
where device_id = 'device_07'
order by "timestamp" desc
limit 1
