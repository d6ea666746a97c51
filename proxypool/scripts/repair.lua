-- repair: put leases back that the queue of deadlines has lost.
--
-- ARGV: ids of leases that were not found in the queue
-- Output: number put back
-- Invariant: an entry too many is harmless, it goes with its lease.

local n = 0
for _, id in ipairs(ARGV) do
  local l = lease_get(id)
  if l then
    redis.call('RPUSH', DEADLINES, l.deadline .. ' ' .. id)
    n = n + 1
  end
end
return tostring(n)
