-- lib_pick: the choice of a proxy.
--
-- Tier by tier, the cheapest first: a few members of the smallest set that the
-- selector names are drawn; of those that can be leased now one is drawn by
-- weight: score squared, free share, time since its last grant, speed. If none of
-- the draw will do, up to SCAN members are looked through from a drawn start. A
-- dearer tier is asked if the cheaper ones have no first choice that is free or
-- expected soon. One acquire in PROBE prefers a proxy that is back from cooling or
-- rated below POOR, so that it is decided upon: no more than one lease in PROBE is
-- spent so.

local SAMPLE, CHUNK, SCAN, POLL, IDLE_CAP, PROBE, POOR = 6, 32, 256, 500, 60000, 8, 400
local STICKY_COOL = 120000

-- fits reports whether a proxy is one that the selector names.
local function fits(q, p)
  if p.st ~= 'a' or p.tier > q.tier then return false end
  if p.expires > 0 and p.expires < now + q.ttl then return false end
  if q.region ~= '' and p.region ~= q.region then return false end
  if q.schemes ~= '' and not string.find(q.schemes, ',' .. p.scheme .. ',', 1, true) then return false end
  for tag in string.gmatch(q.tags, '[^,]+') do
    if not string.find(p.tags, ',' .. tag .. ',', 1, true) then return false end
  end
  return true
end

local function poll(q) return POLL / 2 + q.draw(POLL) end

-- sticky answers the proxy that the session has, or how long until it is free, or
-- nothing: then the session moves on. It does so when its proxy is not active any
-- more or cools for longer than STICKY_COOL, or the host refuses the pair.
local function sticky(q)
  local s = redis.call('HGET', SESSIONS, q.session)
  if not s then return nil end
  local f = split(s)
  if num(f[2]) <= now then return nil end
  local p = proxy_get(f[1])
  if not p or not fits(q, p) or p.cool - now > STICKY_COOL then return nil end
  local pair = redis.call('HGET', PAIRS, p.id .. ' ' .. q.host)
  if pair then
    f = split(pair)
    if f[2] == 'h' and num(f[1]) > now then return nil end
  end
  local max, at = p.max, math.max(p.ready, p.cool)
  if p.row > 0 or q.suspects and p.cred ~= '' and suspects({ 'c|' .. p.cred })[1] >= p.proven then max = 1 end
  if p.inuse >= max then return nil, poll(q) end
  if at > now then return nil, at - now end
  return p
end

local function session_keep(session, id, ttl)
  local new = redis.call('HSET', SESSIONS, session, id .. '|' .. (now + ttl) .. '|')
  if new == 1 then redis.call('RPUSH', SESSQ, (now + ttl) .. ' ' .. session) end
end

local function sessions_forget(k)
  return rotate(SESSQ, k, function(session)
    local s = redis.call('HGET', SESSIONS, session)
    if not s then return nil end
    local till = num(split(s)[2])
    if till > now then return till end
    redis.call('HDEL', SESSIONS, session)
    return nil
  end)
end

-- weigh is how much of a claim a free proxy has, and its score by now. The one
-- stored is of its last sample: it moves to the day's as the newer windows run
-- out, and after a day to what is thought of a new one.
local function weigh(inuse, max, last, score, day, latency)
  local idle = math.max(now - last, 0)
  if idle > 86400000 then score = PRIOR * 1000
  elseif idle > 600000 then
    local old = math.min(idle / 3600000, 1)
    score = score * (1 - old) + day * old
  end
  local speed = 1
  if latency > 1000 then speed = math.max(1000 / latency, 0.25) end
  return (score / 1000) ^ 2 * (1 - inuse / max) * (math.min(idle, IDLE_CAP) + 1) * speed, score
end

-- pick_tier looks for a proxy in one set. It answers what it found: best and
-- soon by rank (1: first choice; 2: avoided, or second choice here).
local function pick_tier(q, set, n)
  local t = { best = {}, total = {}, soon = {}, complete = n <= SCAN }
  local asked = {}

  local function consider(id, s, pair, suspect)
    local st, inuse, max, ready, cool, expires, last, row, score, day, proven, gateway, _, latency = string.match(s,
      '^(%a)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d)|([^|]*)|(%d+)|')
    if st ~= 'a' then return end
    expires = num(expires)
    if expires > 0 and expires < now + q.ttl then return end
    if q.filtered and not fits(q, proxy_parse(id, s)) then return end
    t.found = true
    local at, rank = math.max(num(ready), num(cool)), 1
    -- Of a gateway each lease is another way out.
    if q.avoid[id] and gateway == '0' then rank = 2 end
    if pair then
      local till, kind = string.match(pair, '^(%d+)|(%a)|')
      till = num(till)
      if till > now then
        if kind == 'h' then at = math.max(at, till) end
        if kind == 's' then rank = 2 end
      end
    end
    inuse, max, row, last = num(inuse), num(max), num(row), num(last)
    -- On probation, or under suspicion: one lease at a time decides.
    if row > 0 or suspect and suspect > 0 and suspect >= num(proven) then max = 1 end
    if inuse >= max then
      t.busy = true
      if rank == 1 and at <= now + q.patience and now - last < q.patience then t.young = true end
      return
    end
    if at > now then
      if not t.soon[rank] or at < t.soon[rank] then t.soon[rank] = at end
      return
    end
    local w, rated = weigh(inuse, max, last, num(score), num(day), num(latency))
    if q.probe and (row > 0 or rated < POOR) then w = w * 1e6 end
    t.total[rank] = (t.total[rank] or 0) + w
    if q.draw(1000000) * t.total[rank] < w * 1000000 or not t.best[rank] then t.best[rank] = { id, s } end
  end

  local function look(places)
    local ids, keys = {}, {}
    for _, id in ipairs(redis.call('HMGET', INDEX, unpack(places))) do
      if id and not asked[id] then
        asked[id] = true
        ids[#ids + 1] = id
        keys[#keys + 1] = id .. ' ' .. q.host
      end
    end
    if #ids == 0 then return end
    local states = redis.call('HMGET', PROXIES, unpack(ids))
    local pairs_ = redis.call('HMGET', PAIRS, unpack(keys))
    local since = {}
    if q.suspects then
      local creds = {}
      for i = 1, #ids do creds[i] = 'c|' .. (states[i] and split(states[i])[13] or '') end
      since = suspects(creds)
    end
    for i, id in ipairs(ids) do
      if states[i] then consider(id, states[i], pairs_[i], since[i]) end
    end
  end

  if n > SAMPLE then
    local places = {}
    for i = 1, SAMPLE do places[i] = set .. '|' .. (q.draw(n) + 1) end
    look(places)
  end
  if not t.best[1] then
    local start, left = q.draw(n), math.min(n, SCAN)
    while left > 0 and not t.best[1] do
      local places = {}
      for i = 1, math.min(left, CHUNK) do
        places[i] = set .. '|' .. (start % n + 1)
        start = start + 1
      end
      left = left - #places
      look(places)
    end
  end
  return t
end

local function earlier(a, b)
  if not a or b and b < a then return b end
  return a
end

-- pick answers a proxy, or nil, ms to wait and why.
local function pick(q)
  if q.session ~= '' then
    local p, after = sticky(q)
    if p then return p end
    if after then return nil, after, 'proxies_busy' end
  end
  q.probe = q.draw(PROBE) == 0

  local sets, fields = {}, {}
  for tag in string.gmatch(q.tags, '[^,]+') do sets[#sets + 1] = 't:' .. tag end
  if q.region ~= '' then sets[#sets + 1] = 'r:' .. q.region end
  if #sets == 0 then sets[1] = '*' end
  q.filtered = #sets > 1 or q.schemes ~= ''
  for tier = 0, q.tier do
    for _, set in ipairs(sets) do fields[#fields + 1] = 'n|' .. tiered(set, tier) end
  end
  local counts = redis.call('HMGET', INDEX, unpack(fields))

  local second, soon, busy, found, complete = nil, nil, false, false, true
  for tier = 0, q.tier do
    local set, n
    for i, name in ipairs(sets) do
      local c = num(counts[tier * #sets + i])
      if not n or c < n then set, n = tiered(name, tier), c end
    end
    if n > 0 then
      local t = pick_tier(q, set, n)
      if t.best[1] then return proxy_parse(t.best[1][1], t.best[1][2]) end
      second = second or t.best[2]
      soon = earlier(earlier(soon, t.soon[1]), t.soon[2])
      busy, found, complete = busy or t.busy, found or t.found, complete and t.complete
      if t.young or t.soon[1] and t.soon[1] <= now + q.patience then
        second = nil
        break
      end
    end
  end
  if second then return proxy_parse(second[1], second[2]) end
  if not found and complete then return nil, q.none, 'no_proxy' end
  local after
  if soon then after = soon - now end
  if busy or not complete or not after then after = earlier(after, poll(q)) end
  return nil, after, 'proxies_busy'
end
