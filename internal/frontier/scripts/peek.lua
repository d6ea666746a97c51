-- Shows the next hosts with queued URLs and turns the ring past them.
--
-- ARGV  1 how many hosts
-- OUT   {"ok", host, queued, running, …} or {"norun"}
-- HOLDS every host in the ring comes up once before one comes up again; a host
--       without queued URLs leaves the ring.
if call('HEXISTS', META, 'state') == 0 then return {'norun'} end
local out, want = {'ok'}, tonumber(ARGV[1])
local left = call('LLEN', RING)
while left > 0 and want > 0 do
  left = left - 1
  local h = host_get(call('LPOP', RING))
  if h.queued > 0 then
    call('RPUSH', RING, h.name)
    out[#out + 1] = h.name
    out[#out + 1] = int(h.queued)
    out[#out + 1] = int(h.running)
    want = want - 1
  else
    h.ringed = 0
    host_put(h)
  end
end
return out
