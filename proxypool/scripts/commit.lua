-- commit: store an ended exchange's outcome under its lease.
--
-- ARGV: 1 lease, 2 fence, 3 outcome
-- Output: {"ok"} | {"stale"}
-- Invariant: only under the fence that holds the lease; the first outcome stays.
--   Run again after the lease ended it still says ok to the fence that committed.

local l = lease_get(ARGV[1])
if l then
  if l.fence ~= num(ARGV[2]) or l.deadline <= now or l.granted == 0 then return { 'stale' } end
  redis.call('HSETNX', OUTCOMES, ARGV[1], ARGV[3])
  return { 'ok' }
end
local tomb = redis.call('HGET', TOMBS, ARGV[1])
if tomb and num(split(tomb)[2]) == num(ARGV[2]) and redis.call('HEXISTS', OUTCOMES, ARGV[1]) == 1 then
  return { 'ok' }
end
return { 'stale' }
