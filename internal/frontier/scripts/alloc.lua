-- Gives a campaign its next run number. Registry keys only; without lib.lua.
--
-- KEYS  1 campaigns hash: name -> latest run; 2 runs list: run names, oldest first
-- ARGV  1 campaign; 2 the latest run that the caller saw, 0 for none; 3 the next run's name
-- OUT   the latest run now
-- HOLDS a number is given once; whoever comes second, or again, gets the one that is there.
local latest = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if latest ~= tonumber(ARGV[2]) then return latest end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', latest + 1))
redis.call('RPUSH', KEYS[2], ARGV[3])
return latest + 1
