-- lib_proxy: a proxy's state and what its leases taught.
--
-- PROXIES[id] = state|in use|max concurrency|ready|cool|expires|last|row|ok|bad|
--   min reuse|all ok|all bad|all unclear|unclear row|unclear host|unclear hosts|
--   rung|reason|latency|scheme|region|tags|since|
--   state  a active, d draining, q quarantined, x to be removed with its last lease
--   ready  last grant + min reuse; cool: cooling until; rung: when it last began to
--   row    failures in a row; ok, bad: halved at 64 together, so the newest weigh most
-- CONFIG[id] = the address and credentials, opaque here
-- PAIRS[id .. ' ' .. host] = until|kind|blocks in a row|stamp|
--   kind   s: another proxy is preferred, h: not to be used, n: only remembered
-- PAIRQ entries: "look stamp id host"

local COOL, COOL_CAP, ROW_MAX = 30000, 1800000, 10
local PAIR_SOFT, PAIR_HARD, PAIR_CAP = 30000, 600000, 100000

local function proxy_get(id)
  local s = redis.call('HGET', PROXIES, id)
  if not s then return nil end
  local f = split(s)
  return {
    id = id, st = f[1], inuse = num(f[2]), max = num(f[3]), ready = num(f[4]), cool = num(f[5]),
    expires = num(f[6]), last = num(f[7]), row = num(f[8]), ok = num(f[9]), bad = num(f[10]),
    reuse = num(f[11]), aok = num(f[12]), abad = num(f[13]), unclear = num(f[14]), urow = num(f[15]),
    uhost = f[16], uhosts = num(f[17]), rung = num(f[18]), reason = f[19], latency = num(f[20]),
    scheme = f[21], region = f[22], tags = f[23], since = num(f[24]),
  }
end

local function proxy_put(p)
  redis.call('HSET', PROXIES, p.id, table.concat({
    p.st, p.inuse, p.max, p.ready, p.cool, p.expires, p.last, p.row, p.ok, p.bad,
    p.reuse, p.aok, p.abad, p.unclear, p.urow, p.uhost, p.uhosts, p.rung, p.reason, p.latency,
    p.scheme, p.region, p.tags, p.since, '' }, '|'))
end

local function proxy_delete(p)
  local ident = redis.call('HGET', IDENTS, '#' .. p.id)
  if ident then redis.call('HDEL', IDENTS, ident, '#' .. p.id) end
  redis.call('HDEL', PROXIES, p.id)
  redis.call('HDEL', CONFIG, p.id)
end

local function proxy_state(p, st, reason)
  if p.st == 'a' then index_remove(p) end
  p.st = st
  p.reason = reason
  p.since = now
  if st == 'a' then index_add(p) end
end

-- proxy_free gives one place back; a proxy that was to be removed goes with its last.
local function proxy_free(p)
  if p.inuse > 0 then p.inuse = p.inuse - 1 end
  if p.st == 'x' and p.inuse == 0 then proxy_delete(p) else proxy_put(p) end
end

local function decay(p)
  if p.ok + p.bad >= 64 then
    p.ok = math.floor(p.ok / 2)
    p.bad = math.floor(p.bad / 2)
  end
end

local function proxy_failed(p, granted, reason)
  p.bad = p.bad + 1
  p.abad = p.abad + 1
  decay(p)
  if p.st ~= 'a' then return end
  p.reason = reason
  -- Leases that were open when the cooling began say nothing new.
  if granted < p.rung then return end
  p.row = p.row + 1
  p.rung = now
  p.cool = now + math.min(COOL * 2 ^ (p.row - 1), COOL_CAP)
  if p.row >= ROW_MAX then proxy_state(p, 'q', reason) end
end

-- proxy_sample takes one lease's verdict. Unclear ones (proxy or target?) count
-- as a failure from the third in a row on, and only if they came from two hosts:
-- a host that times out through every proxy blames none of them.
local function proxy_sample(p, verdict, reason, latency, host, granted)
  if latency > 0 then
    if p.latency == 0 then p.latency = latency else p.latency = math.floor((7 * p.latency + latency) / 8) end
  end
  if verdict == 'success' then
    p.ok = p.ok + 1
    p.aok = p.aok + 1
    decay(p)
    p.row, p.urow, p.uhost, p.uhosts, p.cool = 0, 0, '', 0, 0
    if p.st == 'a' then p.reason = '' end
  elseif verdict == 'failure' then
    proxy_failed(p, granted, reason)
  elseif verdict == 'denied' then
    p.bad = p.bad + 1
    p.abad = p.abad + 1
    decay(p)
    if p.st == 'a' then proxy_state(p, 'q', reason) end
  elseif verdict == 'unclear' then
    p.unclear = p.unclear + 1
    p.urow = p.urow + 1
    if p.uhost == '' then
      p.uhost = host
    elseif p.uhost ~= host then
      p.uhosts = 1
    end
    if p.urow >= 3 and p.uhosts == 1 then proxy_failed(p, granted, reason) end
  end
end

local function pair_put(key, till, kind, blocks)
  local stamp = redis.call('HINCRBY', META, 'pair', 1)
  redis.call('HSET', PAIRS, key, table.concat({ till, kind, blocks, stamp, '' }, '|'))
  redis.call('RPUSH', PAIRQ, till .. ' ' .. stamp .. ' ' .. key)
end

local function pair_sample(id, host, verdict)
  local key = id .. ' ' .. host
  if verdict == 'passed' then
    redis.call('HDEL', PAIRS, key)
    return
  end
  if verdict ~= 'throttled' and verdict ~= 'blocked' then return end
  local s = redis.call('HGET', PAIRS, key)
  if not s and redis.call('HLEN', PAIRS) >= PAIR_CAP then return end
  local f = split(s or '')
  local blocks = num(f[3])
  if num(f[1]) <= now then blocks = 0 end
  if verdict == 'throttled' then
    if f[2] ~= 'h' or num(f[1]) <= now then pair_put(key, now + PAIR_SOFT, 's', blocks) end
    return
  end
  blocks = blocks + 1
  local kind = 'n'
  if blocks >= 2 then kind = 'h' end
  pair_put(key, now + PAIR_HARD, kind, blocks)
end

local function pairs_forget(k)
  return rotate(PAIRQ, k, function(rest)
    local stamp, key = string.match(rest, '^(%d+) (.*)$')
    local s = redis.call('HGET', PAIRS, key)
    if s and split(s)[4] == stamp then redis.call('HDEL', PAIRS, key) end
    return nil
  end)
end
