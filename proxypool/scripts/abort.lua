-- abort: ask a lease's holder to stop; it learns so at its next renewal.
--
-- ARGV: 1 lease
-- Output: "1" if the lease is open, else "0"
-- Invariant: nothing else changes.

local l = lease_get(ARGV[1])
if not l then return '0' end
if l.abort == 0 then
  l.abort = 1
  lease_put(l)
end
return '1'
