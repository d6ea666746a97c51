-- recount: put right what proxies and hosts say is in use.
--
-- ARGV: 1 the number of recounts so far, as it was when the leases were counted,
--   then three an item: "p" or "h", id, what to add
-- Output: number put right; 0 if another recount came first
-- Invariant: what is added was missing at one instant; grants and releases since
--   then have moved the counts by themselves.

if num(redis.call('HGET', META, 'recounts')) ~= num(ARGV[1]) then return '0' end
redis.call('HINCRBY', META, 'recounts', 1)
local n = 0
for i = 2, #ARGV, 3 do
  local id, by = ARGV[i + 1], num(ARGV[i + 2])
  if ARGV[i] == 'p' then
    local p = proxy_get(id)
    if p then
      p.inuse = math.max(p.inuse + by, 0)
      if p.st == 'x' and p.inuse == 0 then proxy_delete(p) else proxy_put(p) end
      n = n + 1
    end
  else
    local h = host_get(id)
    h.open = math.max(h.open + by, 0)
    host_put(h)
    n = n + 1
  end
end
return tostring(n)
