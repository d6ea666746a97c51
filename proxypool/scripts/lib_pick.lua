-- lib_pick: the choice of a proxy.
--
-- A few members of the smallest set that the selector names are drawn; of those
-- that can be leased now the one wins whose idle time, weighted by its health squared, is
-- the longest: equal ones take turns, an ill one is asked less often. If none of
-- the draw will do, up to SCAN members are looked through from a drawn start.

local SAMPLE, CHUNK, SCAN, POLL, IDLE_CAP = 6, 32, 256, 500, 3600000

local function pick(q)
  local state = q.seed
  local function draw(n)
    state = (state * 16807) % 2147483647
    return state % n
  end

  local sets, filter = {}, {}
  for tag in string.gmatch(q.tags, '[^,]+') do sets[#sets + 1] = 't:' .. tag end
  if q.region ~= '' then sets[#sets + 1] = 'r:' .. q.region end
  if #sets == 0 then sets[1] = '*' end
  local fields = {}
  for i, set in ipairs(sets) do fields[i] = 'n|' .. set end
  local counts = redis.call('HMGET', INDEX, unpack(fields))
  local set, n
  for i, name in ipairs(sets) do
    local c = num(counts[i])
    if not n or c < n then set, n = name, c end
  end
  local filtered = #sets > 1 or q.schemes ~= ''
  if n == 0 then return nil, q.none, 'no_proxy' end

  -- first: proxies that are not second choice; second: avoided or throttled here.
  local best, score, ties = {}, {}, {}
  local soon, busy = {}, {}
  local young, found = false, false

  local function consider(id, s, pair)
    local st, inuse, max, ready, cool, expires, last, row, ok, bad =
      string.match(s, '^(%a)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|')
    if st ~= 'a' then return end
    expires = num(expires)
    if expires > 0 and expires < now + q.ttl then return end
    if filtered then
      local f = split(s)
      if q.schemes ~= '' and not string.find(q.schemes, ',' .. f[21] .. ',', 1, true) then return end
      if q.region ~= '' and f[22] ~= q.region then return end
      for tag in string.gmatch(q.tags, '[^,]+') do
        if not string.find(f[23], ',' .. tag .. ',', 1, true) then return end
      end
    end
    found = true
    local at, rank = math.max(num(ready), num(cool)), 1
    if q.avoid[id] then rank = 2 end
    if pair then
      local till, kind = string.match(pair, '^(%d+)|(%a)|')
      till = num(till)
      if till > now then
        if kind == 'h' then at = math.max(at, till) end
        if kind == 's' then rank = 2 end
      end
    end
    inuse, max, row, last = num(inuse), num(max), num(row), num(last)
    if row > 0 then max = 1 end -- on probation: one lease at a time decides
    if inuse >= max then
      busy[rank] = true
      if rank == 1 and at <= now + q.patience and now - last < q.patience then young = true end
      return
    end
    if at > now then
      if not soon[rank] or at < soon[rank] then soon[rank] = at end
      return
    end
    ok, bad = num(ok), num(bad)
    local health = (ok + 2) / (ok + bad + 2)
    local sc = (math.min(now - last, IDLE_CAP) + 1) * health * health
    if not score[rank] or sc > score[rank] then
      best[rank], score[rank], ties[rank] = id, sc, 1
    elseif sc == score[rank] and id ~= best[rank] then
      ties[rank] = ties[rank] + 1
      if draw(ties[rank]) == 0 then best[rank] = id end
    end
  end

  local function look(places)
    local ids, keys = {}, {}
    for _, id in ipairs(redis.call('HMGET', INDEX, unpack(places))) do
      if id then
        ids[#ids + 1] = id
        keys[#keys + 1] = id .. ' ' .. q.host
      end
    end
    if #ids == 0 then return end
    local states = redis.call('HMGET', PROXIES, unpack(ids))
    local pairs_ = redis.call('HMGET', PAIRS, unpack(keys))
    for i, id in ipairs(ids) do
      if states[i] then consider(id, states[i], pairs_[i]) end
    end
  end

  local complete = n <= SCAN
  if n > SAMPLE then
    local places = {}
    for i = 1, SAMPLE do places[i] = set .. '|' .. (draw(n) + 1) end
    look(places)
  end
  if not best[1] then
    local start, left = draw(n), math.min(n, SCAN)
    while left > 0 and not best[1] do
      local places = {}
      for i = 1, math.min(left, CHUNK) do
        places[i] = set .. '|' .. (start % n + 1)
        start = start + 1
      end
      left = left - #places
      look(places)
    end
  end

  if best[1] then return best[1] end
  local patient = young or (soon[1] and soon[1] <= now + q.patience)
  if best[2] and not patient then return best[2] end
  if not found and complete then return nil, q.none, 'no_proxy' end
  local after
  if soon[1] then after = soon[1] - now end
  if soon[2] and (not after or soon[2] - now < after) then after = soon[2] - now end
  if busy[1] or busy[2] or not complete or not after then
    local poll = POLL / 2 + draw(POLL)
    if not after or poll < after then after = poll end
  end
  return nil, after, 'proxies_busy'
end
