-- abort: ask a lease's holder to stop; it learns so at its next renewal.
--
-- ARGV: 1 lease
-- Output: "1" if the lease is open, else "0"
-- Invariant: a lease that is not there yet never will be: an acquire that is
--   still under way finds the tombstone.

local l = lease_get(ARGV[1])
if not l then
  if redis.call('HEXISTS', TOMBS, ARGV[1]) == 0 then tomb_put(ARGV[1], 0, 'settled') end
  return '0'
end
if l.abort == 0 then
  l.abort = 1
  lease_put(l)
end
return '1'
