-- hosts: the slots of some hosts.
--
-- ARGV: hosts
-- Output: for each {ms to its next free turn, ms for which it is closed, open
--   leases, turns reserved, proxies whose latest outcome of the last ten minutes
--   here was an answer, an unclear fault, a block}
-- Invariant: writes nothing.

local out = {}
for i, host in ipairs(ARGV) do
  local h = host_get(host)
  local seen = others(h.seen, '', SEEN_AGE, SEEN)
  local turn = math.max(h.next, h.nb, tail(h))
  out[i] = {
    tostring(math.max(turn - now, 0)), tostring(math.max(h.nb - now, 0)), tostring(h.open), tostring(h.res),
    tostring(seen['+']), tostring(seen['-']), tostring(seen.b),
  }
end
return out
