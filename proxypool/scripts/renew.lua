-- renew: extend a lease by one ttl from now, not past its proxy's end.
--
-- ARGV: 1 lease, 2 fence, 3 ttl ms
-- Output: {"ok", "1" if its holder was asked to stop else "0", ms for which the
--   host is still closed, ms to the deadline}
--   {"stale"}
-- Invariant: only a lease that is held under this fence and not past its deadline.

local l = lease_get(ARGV[1])
if not l or l.fence ~= num(ARGV[2]) or l.deadline <= now or l.granted == 0 then return { 'stale' } end
lease_extend(l, num(ARGV[3]))
lease_put(l)
local closed = host_get(l.host).nb - now
if closed < 0 then closed = 0 end
return { 'ok', tostring(l.abort), tostring(closed), tostring(l.deadline - now) }
