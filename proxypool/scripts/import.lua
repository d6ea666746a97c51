-- import: add proxies or bring known ones up to date.
--
-- ARGV: 1 "1" to only say what would be done, then eleven a proxy: identity
--   (scheme|host|port|user), config, scheme, region, tags (",a,b," or ""),
--   expires ms, max concurrency, min reuse ms, tier, "1" for a gateway else "0",
--   a name for its credentials or ""
-- Output: for each {id, "added" | "updated" | "unchanged"}
-- Invariant: an identity keeps its id, its leases and its health; run again it
--   changes nothing. One that drains comes back; one quarantined for its
--   credentials comes back when they changed.

local out = {}
local dry = ARGV[1] == '1'
for i = 2, #ARGV, 11 do
  local ident, config, scheme, region, tags = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local expires, max, reuse = num(ARGV[i + 5]), num(ARGV[i + 6]), num(ARGV[i + 7])
  local tier, gateway, cred = num(ARGV[i + 8]), num(ARGV[i + 9]), ARGV[i + 10]
  local id, what = redis.call('HGET', IDENTS, ident), 'unchanged'
  local p = nil
  if id then p = proxy_get(id) end
  if not p and dry then
    id, what = '', 'added'
  elseif not p then
    id = string.format('p%02d', redis.call('HINCRBY', META, 'proxy', 1))
    redis.call('HSET', IDENTS, ident, id, '#' .. id, ident)
    p = {
      id = id, st = 'a', inuse = 0, max = max, ready = 0, expires = expires, last = 0, gateway = gateway, cred = cred,
      latency = 0, reuse = reuse, aok = 0, abad = 0, unclear = 0, reason = '', scheme = scheme, region = region,
      tags = tags, since = now, tier = tier,
    }
    proxy_fresh(p)
    p.proven = 0
    redis.call('HSET', CONFIG, id, config)
    proxy_put(p)
    index_add(p)
    what = 'added'
  else
    local same = redis.call('HGET', CONFIG, id) == config
    local revive = p.st == 'd' or p.st == 'x' or (p.st == 'q' and p.reason == 'proxy_auth' and not same)
    if not same or revive or p.region ~= region or p.tags ~= tags or p.expires ~= expires or p.max ~= max or p.reuse ~= reuse
        or p.tier ~= tier then
      what = 'updated'
      if not dry then
        local active = p.st == 'a'
        if active then index_remove(p) end
        p.region, p.tags, p.expires, p.max, p.reuse, p.tier = region, tags, expires, max, reuse, tier
        p.gateway, p.cred = gateway, cred
        if active then index_add(p) end
        if revive then
          p.row, p.cool, p.proven = 0, 0, 0
          proxy_state(p, 'a', '')
        end
        redis.call('HSET', CONFIG, id, config)
        proxy_put(p)
      end
    end
  end
  out[#out + 1] = { id, what }
end
return out
