-- lib_proxy: a proxy's record, its windows of samples and its ladder.
--
-- PROXIES[id] = state|in use|max concurrency|ready|cool|expires|last|row|score|
--   day|proven|gateway|credentials|latency|            what the choice reads ends here
--   min reuse|all ok|all bad|all unclear|trail|rung|reason|scheme|region|tags|
--   since|tier|ring|
--   state   a active, d draining, q quarantined, x to be removed with its last lease
--   ready   last grant + min reuse; cool: cooling until; rung: when it last began to
--   row     failures in a row
--   score   0 to 1000 by all windows at the last sample; day: by that of 24 h alone
--   proven  grant of the last lease that succeeded: later suspicion needs a new one
--   gateway 1: its user name holds {session}, each lease is another way out
--   trail   the latest outcome at the last few hosts (lib_verdict.lua)
--   ring    the windows, see ring_add
-- CONFIG[id] = the address and credentials, opaque here
-- META['c|' .. credentials] = when they were refused; META.suspects: when any was

local COOL, COOL_CAP, ROW_MAX, DAY_MIN = 30000, 1800000, 10, 10
local SUSPECT_KEEP = 86400000
local PRIOR, PULL = 0.75, 3

local function proxy_parse(id, s)
  local f = split(s)
  return {
    id = id, st = f[1], inuse = num(f[2]), max = num(f[3]), ready = num(f[4]), cool = num(f[5]),
    expires = num(f[6]), last = num(f[7]), row = num(f[8]), score = num(f[9]), day = num(f[10]),
    proven = num(f[11]), gateway = num(f[12]), cred = f[13], latency = num(f[14]),
    reuse = num(f[15]), aok = num(f[16]), abad = num(f[17]), unclear = num(f[18]), trail = f[19],
    rung = num(f[20]), reason = f[21], scheme = f[22], region = f[23], tags = f[24], since = num(f[25]),
    tier = num(f[26]), ring = f[27],
  }
end

local function proxy_get(id)
  local s = redis.call('HGET', PROXIES, id)
  if not s then return nil end
  return proxy_parse(id, s)
end

local function proxy_put(p)
  redis.call('HSET', PROXIES, p.id, table.concat({
    p.st, p.inuse, p.max, p.ready, p.cool, p.expires, p.last, p.row, p.score, p.day,
    p.proven, p.gateway, p.cred, p.latency,
    p.reuse, p.aok, p.abad, p.unclear, p.trail, p.rung, p.reason, p.scheme, p.region, p.tags,
    p.since, p.tier, p.ring, '' }, '|'))
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

-- proxy_fresh forgets what was learnt: a proxy that is new, or restored by hand.
local function proxy_fresh(p)
  p.row, p.cool, p.rung, p.trail, p.ring = 0, 0, 0, '', ''
  p.score, p.day, p.proven = PRIOR * 1000, PRIOR * 1000, nowc
end

-- proxy_free gives one place back; a proxy that was to be removed goes with its last.
local function proxy_free(p)
  if p.inuse > 0 then p.inuse = p.inuse - 1 end
  if p.st == 'x' and p.inuse == 0 then proxy_delete(p) else proxy_put(p) end
end

-- The ring is "epoch:cells": the epoch counts 2 min; the windows of 24 h (8
-- buckets of 3 h), 1 h (6 of 10 min) and 10 min (5 of 2 min) follow one another,
-- bucket k of a window of n in place k % n, each "ok bad" in two digits of base
-- 80 from '*' on. A full bucket is halved, so that its share stays. A window
-- reaches back between its length less one bucket and its length.
local RING_MS, RING_BASE, RING_ZERO, RING_FULL = 120000, 80, 42, 6399
local RING_WINDOWS = { { 90, 8 }, { 5, 6 }, { 1, 5 } }

-- ring_add takes one sample and rates the proxy: each window's share of
-- successes, drawn by few samples to that of the next longer one, and the
-- longest to PRIOR; so the newest count most. It answers the day's ok and bad.
local function ring_add(p, good)
  local epoch = math.floor(now / RING_MS)
  local was, packed = string.match(p.ring, '^(%d+):(.*)$')
  was = num(was)
  local c = {}
  if packed then
    local b = { string.byte(packed, 1, -1) }
    for i = 1, #b / 2 do c[i] = (b[2 * i - 1] - RING_ZERO) * RING_BASE + b[2 * i] - RING_ZERO end
    epoch = math.max(epoch, was)
  else
    for i = 1, 38 do c[i] = 0 end
  end
  local off, rate, day_ok, day_bad = 0, PRIOR, 0, 0
  for w, window in ipairs(RING_WINDOWS) do
    local width, n = window[1], window[2]
    local from, to = math.floor(was / width), math.floor(epoch / width)
    for k = math.max(from + 1, to - n + 1), to do
      local cell = off + 2 * (k % n)
      c[cell + 1], c[cell + 2] = 0, 0
    end
    local cell = off + 2 * (to % n) + (good and 1 or 2)
    if c[cell] >= RING_FULL then
      local first = off + 2 * (to % n)
      c[first + 1], c[first + 2] = math.floor(c[first + 1] / 2), math.floor(c[first + 2] / 2)
    end
    c[cell] = c[cell] + 1
    local ok, bad = 0, 0
    for i = off + 1, off + 2 * n, 2 do ok, bad = ok + c[i], bad + c[i + 1] end
    rate = (ok + PULL * rate) / (ok + bad + PULL)
    if w == 1 then
      p.day = math.floor(rate * 1000 + 0.5)
      day_ok, day_bad = ok, bad
    end
    off = off + 2 * n
  end
  p.score = math.floor(rate * 1000 + 0.5)
  local out = {}
  for i = 1, #c do
    out[2 * i - 1] = math.floor(c[i] / RING_BASE) + RING_ZERO
    out[2 * i] = c[i] % RING_BASE + RING_ZERO
  end
  p.ring = epoch .. ':' .. string.char(unpack(out))
  return day_ok, day_bad
end

local function proxy_succeeded(p, granted)
  p.aok = p.aok + 1
  ring_add(p, true)
  p.row, p.cool = 0, 0
  p.proven = math.max(p.proven, granted)
  if p.st == 'a' then p.reason = '' end
end

-- proxy_failed climbs one rung. The last one quarantines; so does a day of which
-- at most a quarter succeeded, for a success now and then resets the row.
local function proxy_failed(p, granted, reason)
  p.abad = p.abad + 1
  -- Leases that were open when the cooling began say nothing new.
  if granted <= p.rung then return end
  local ok, bad = ring_add(p, false)
  if p.st ~= 'a' then return end
  p.reason = reason
  p.row = p.row + 1
  p.rung = now
  p.cool = now + math.min(COOL * 2 ^ (p.row - 1), COOL_CAP)
  if p.row >= ROW_MAX or p.row >= 3 and ok + bad >= DAY_MIN and bad >= 3 * ok then proxy_state(p, 'q', reason) end
end

-- proxy_denied quarantines a proxy that refused its credentials, and suspects
-- all that have the same: each must prove itself, one lease at a time.
local function proxy_denied(p, reason)
  p.abad = p.abad + 1
  ring_add(p, false)
  if p.st == 'a' then proxy_state(p, 'q', reason) end
  if p.cred ~= '' then redis.call('HSET', META, 'c|' .. p.cred, now, 'suspects', now) end
end

-- suspects answers, for credentials, when they were last refused; nothing is
-- asked where none was within a day.
local function suspects(creds)
  local at = redis.call('HMGET', META, unpack(creds))
  for i = 1, #creds do
    at[i] = num(at[i])
    if at[i] + SUSPECT_KEEP < now then at[i] = 0 end
  end
  return at
end
