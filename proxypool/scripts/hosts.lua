-- hosts: the slots of some hosts.
--
-- ARGV: hosts
-- Output: for each {ms to its next free turn, ms for which it is closed, open leases, turns reserved}
-- Invariant: writes nothing.

local out = {}
for i, host in ipairs(ARGV) do
  local h = host_get(host)
  local turn = math.max(h.next, h.nb, tail(h))
  out[i] = {
    tostring(math.max(turn - now, 0)), tostring(math.max(h.nb - now, 0)), tostring(h.open), tostring(h.res),
  }
end
return out
