-- close_host: grant nothing at a host for some time.
--
-- ARGV: 1 host, 2 ms from now
-- Output: ms for which the host is closed
-- Invariant: never shortens; the turns reserved there keep their order and spacing.

local h = host_get(ARGV[1])
host_close(h, nowc + num(ARGV[2]))
if h.nb > now then host_put(h) end
return tostring(math.max(h.nb - now, 0))
