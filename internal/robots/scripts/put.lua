-- Keeps an entry.
-- KEYS[1]  the entry
-- ARGV[1]  how long, milliseconds; ARGV[2]  the value
-- Returns  1
-- Invariant: the key's TTL never ends before the stored deadline.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
redis.call('HSET', KEYS[1], 'deadline', string.format('%.0f', now + tonumber(ARGV[1])), 'value', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
