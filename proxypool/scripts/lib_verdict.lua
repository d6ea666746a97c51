-- lib_verdict: who is to blame, by the evidence of other hosts and other proxies.
--
-- A host's "seen" and a proxy's "trail" are the latest outcomes there, newest
-- first: "proxy mark minute;" and "host mark minute;", the host as four hex
-- digits of its SHA-1, the minute modulo 10,000.
--   mark + an answer, - an unclear fault, b (seen only) a block
-- PAIRS[id .. ' ' .. host] = until|kind|blocks in a row|ok|bad|last fault|
--   kind   s: another proxy is preferred, h: not to be used, n: only remembered
--   A pair has a record from its first fault or block until PAIR_KEEP after its
--   last; ok and bad are halved for each ten minutes between two faults.
-- PAIRQ entries: "look id host"

local SEEN, SEEN_AGE, TRAIL, TRAIL_AGE = 8, 10, 6, 180
local PAIR_SOFT, PAIR_HARD, PAIR_KEEP, PAIR_CAP = 30000, 600000, 3600000, 100000

local minute = math.floor(now / 60000) % 10000

-- marked puts an entry in front of a list and takes its older one out; without a
-- mark it only takes it out.
local function marked(list, name, mark, most)
  local out, n = {}, 0
  if mark then
    out[1] = name .. mark .. minute .. ';'
    n = 1
  end
  for entry, who in string.gmatch(list, '(([^;+%-]-)[+%-b]%d+;)') do
    if n >= most then break end
    if who ~= name then
      n = n + 1
      out[n] = entry
    end
  end
  return table.concat(out)
end

-- others counts the marks of the entries that are not name's, newest first and
-- at most k, within age minutes.
local function others(list, name, age, k)
  local t = { ['+'] = 0, ['-'] = 0, b = 0 }
  for who, mark, at in string.gmatch(list, '([^;+%-]-)([+%-b])(%d+);') do
    if who ~= name and (minute - num(at)) % 10000 <= age then
      t[mark] = t[mark] + 1
      k = k - 1
      if k == 0 then break end
    end
  end
  return t
end

-- blame says whose an unclear fault is. The host's, if at least two other proxies
-- failed there and no more than as many got through; the proxy's, if it failed at
-- the last two other hosts as well (the last one, if it is on probation or had a
-- bad day); else nobody's.
local function blame(p, h, name)
  local here = others(h.seen, p.id, SEEN_AGE, SEEN)
  if here['-'] >= 2 and here['-'] >= here['+'] then return 'host' end
  local k = 2
  if p.row > 0 or p.day < 500 then k = 1 end
  if others(p.trail, name, TRAIL_AGE, k)['-'] == k then return 'proxy' end
  return 'nobody'
end

local function pair_learn(p, h, pair, fault)
  local key = p.id .. ' ' .. h.host
  local s = redis.call('HGET', PAIRS, key)
  local soft, hard = pair == 'throttled', pair == 'blocked'
  if not (s or fault or soft or hard) then return end
  if not s and redis.call('HLEN', PAIRS) >= PAIR_CAP then return end
  local f = split(s or '')
  local r = { till = num(f[1]), kind = f[2] or 'n', blocks = num(f[3]), ok = num(f[4]), bad = num(f[5]), at = num(f[6]) }
  if fault or hard then
    local half = 2 ^ math.floor((now - r.at) / 600000)
    r.ok, r.bad = math.floor(r.ok / half), math.floor(r.bad / half) + 1
  end
  if fault or hard or soft then r.at = now end
  if pair == 'passed' then
    r.ok, r.blocks, r.till, r.kind = r.ok + 1, 0, 0, 'n'
  elseif hard then
    r.blocks = r.blocks + 1
    local t = others(h.seen, p.id, SEEN_AGE, SEEN)
    -- A host that blocks all of them blocks none of them in particular. Of a
    -- gateway each lease is another way out, so more of them must be blocked.
    if t['+'] >= 1 and t['+'] >= t.b then
      r.till, r.kind = now + PAIR_HARD, 's'
      if r.blocks >= (p.gateway == 1 and 6 or 2) then r.kind = 'h' end
    end
  elseif r.kind ~= 'h' or r.till <= now then
    if soft then r.till, r.kind = math.max(r.till, now + PAIR_SOFT), 's' end
    if fault and r.bad >= 3 and r.bad > r.ok then r.till, r.kind = now + PAIR_HARD, 's' end
  end
  redis.call('HSET', PAIRS, key, table.concat({ r.till, r.kind, r.blocks, r.ok, r.bad, r.at, '' }, '|'))
  if not s then redis.call('RPUSH', PAIRQ, (now + PAIR_KEEP) .. ' ' .. key) end
end

-- learn takes one lease's verdict: the proxy's sample, what the host and the
-- pair are remembered for. The caller stores p and h.
local function learn(p, h, v)
  if v.latency > 0 then
    if p.latency == 0 then p.latency = v.latency else p.latency = math.floor((7 * p.latency + v.latency) / 8) end
  end
  local name = string.sub(redis.sha1hex(h.host), 1, 4)
  local fault, seen, trail = false, nil, nil
  if v.proxy == 'success' then
    proxy_succeeded(p, v.granted)
    seen, trail = '+', '+'
  elseif v.proxy == 'failure' then
    proxy_failed(p, v.granted, v.reason)
    trail = '-'
  elseif v.proxy == 'denied' then
    proxy_denied(p, v.reason)
  elseif v.proxy == 'unclear' then
    p.unclear = p.unclear + 1
    local who = blame(p, h, name)
    if who == 'proxy' then
      proxy_failed(p, v.granted, v.reason)
      trail = '-'
      h.seen = marked(h.seen, p.id, nil, SEEN)
    elseif who == 'host' then
      seen = '-'
    else
      fault, trail = true, '-'
      -- One on probation is no witness against a host.
      if p.row == 0 then seen = '-' end
    end
  end
  if v.pair == 'blocked' then seen = 'b' end
  if trail then p.trail = marked(p.trail, name, trail, TRAIL) end
  if h.host == '' then return end
  pair_learn(p, h, v.pair, fault)
  if seen then h.seen = marked(h.seen, p.id, seen, SEEN) end
end

local function pairs_forget(k)
  return rotate(PAIRQ, k, function(key)
    local s = redis.call('HGET', PAIRS, key)
    if not s then return nil end
    local gone = num(split(s)[6]) + PAIR_KEEP
    if gone > now then return gone end
    redis.call('HDEL', PAIRS, key)
    return nil
  end)
end
