-- Reads an entry that has not expired.
-- KEYS[1]  the entry
-- Returns  {milliseconds left, value}, or nil for none
-- Invariant: never answers an entry past its deadline, whether or not the key's TTL runs.
local v = redis.call('HMGET', KEYS[1], 'deadline', 'value')
if not v[1] or not v[2] then return nil end
local t = redis.call('TIME')
local left = tonumber(v[1]) - (tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000))
if left <= 0 then return nil end
return {left, v[2]}
