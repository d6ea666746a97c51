-- Takes or extends an origin's lock.
-- KEYS[1]  the lock
-- ARGV[1]  holder; ARGV[2]  how long, milliseconds
-- Returns  1 if the holder has it, 0 if another one does
-- Invariant: at most one holder before the deadline. Running it twice is as running it once.
local v = redis.call('HMGET', KEYS[1], 'holder', 'deadline')
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if v[1] and v[1] ~= ARGV[1] and tonumber(v[2]) > now then return 0 end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'deadline', string.format('%.0f', now + tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
