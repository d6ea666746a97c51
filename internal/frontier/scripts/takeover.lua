-- Makes a feeder the run's only one.
--
-- ARGV  1 the feeder's number
-- OUT   "ok", "norun", or "fenced" when a higher number is there
-- HOLDS the number never falls.
local m = call('HMGET', META, 'state', 'feeder')
if not m[1] then return 'norun' end
if tonumber(m[2] or '0') > tonumber(ARGV[1]) then return 'fenced' end
call('HSET', META, 'feeder', ARGV[1])
return 'ok'
