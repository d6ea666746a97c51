-- acquire: decide host and proxy together and lease them, or say how long to
-- wait and why.
--
-- ARGV: 1 lease, 2 holder, 3 claimant, 4 host, 5 interval ms, 6 concurrency (0:
--   no limit), 7 mode (proxy, direct, settle), 8 ttl ms, 9 highest fence the
--   client has seen, 10 seed, 11 grace ms of a turn, 12 tombstones' keep ms,
--   13 patience ms, 14 wait ms when there is no proxy, 15 region,
--   16 schemes (",http,socks5," or empty), 17 tags ("a,b"), 18 dearest tier,
--   19 session or empty, 20 ms that a session is kept, 21… ids to avoid
-- Output: {"grant", fence, proxy, its config, host, "1" if it was another's before
--     else "0", ms to the deadline}
--   {"wait", ms, why, "1" if the lease is open all the same (taken over from another holder), else "0"}
--   {"ended", "1" or "0", outcome, "1" if this settle ended it, else "0", "1" if it was open until then, else "0"}
-- Invariant: the same lease and holder get the same grant however often this
--   runs; a tombstone never becomes a lease; a wait for the host charges its turn
--   once; a refusal for want of a proxy charges nothing.

local id, holder, host = ARGV[1], ARGV[2], ARGV[4]
local interval, conc, mode, ttl = num(ARGV[5]), num(ARGV[6]), ARGV[7], num(ARGV[8])
local seen, seed, grace = num(ARGV[9]), num(ARGV[10]), num(ARGV[11])
local key = host .. ' ' .. ARGV[3]

local function ended(fresh, open)
  local o = redis.call('HGET', OUTCOMES, id)
  if o then return { 'ended', '1', o, '0', '0' } end
  return { 'ended', '0', '', fresh and '1' or '0', open and '1' or '0' }
end

reap_due(3)
local chore = seed % 8
if chore % 2 == 0 then tombs_trim(4, num(ARGV[12]))
elseif chore == 1 then turns_forget(8, grace)
elseif chore == 3 then pairs_forget(4)
elseif chore == 5 then sessions_forget(4)
else hosts_forget(4) end

local l = lease_get(id)
if l and l.deadline <= now then
  lease_end(l, 'reaped')
  return ended()
end
if not l and redis.call('HEXISTS', TOMBS, id) == 1 then return ended() end

if mode == 'settle' then
  if l then
    if redis.call('HEXISTS', OUTCOMES, id) == 1 then return ended() end
    lease_end(l, 'settled')
  else
    tomb_put(id, 0, 'settled')
  end
  local h = host_get(host)
  if redis.call('HEXISTS', TURNS, key) == 1 then
    turn_drop(h, key)
    host_put(h)
  end
  return ended(true, l)
end

if l then
  if redis.call('HEXISTS', OUTCOMES, id) == 1 then return ended() end
  if l.holder == holder and l.granted > 0 then
    lease_extend(l, ttl)
    lease_put(l)
    return lease_reply(l)
  end
end

local meta = redis.call('HMGET', META, 'fence', 'gate', 'suspects')
if seen > num(meta[1]) then
  -- This Redis has lost grants that somebody saw: whatever they hold must run
  -- out before anything is granted again.
  meta[2] = now + ttl
  redis.call('HSET', META, 'fence', seen, 'gate', meta[2])
end
if num(meta[2]) > now then return { 'wait', tostring(num(meta[2]) - now), 'generation', l and '1' or '0' } end

if l and l.holder ~= holder then
  host_free(l.host)
  -- Not granted: from here on the old holder's fence is good for nothing.
  l.holder, l.host, l.granted, l.again = holder, '', 0, 1
end
if l then
  lease_extend(l, ttl)
  lease_put(l)
end

local h = host_get(host)
local after, why, r = turn_check(h, key, interval, conc, grace)
if after > 0 then
  host_put(h)
  return { 'wait', tostring(after), why, l and '1' or '0' }
end

local p
if l then
  if l.proxy ~= '' then
    p = proxy_get(l.proxy)
    if not p then
      lease_end(l, 'settled')
      return ended()
    end
    if p.ready > now then after, why = p.ready - now, 'proxies_busy' end
  end
elseif mode ~= 'direct' then
  local avoid, state = {}, (seed + now) % 2147483646 + 1
  for i = 21, #ARGV do avoid[ARGV[i]] = true end
  local function draw(n)
    state = (state * 16807) % 2147483647
    return math.floor(state / 2147483647 * n)
  end
  -- The first of neighbouring seeds lie close together.
  draw(1)
  draw(1)
  p, after, why = pick({
    ttl = ttl, patience = num(ARGV[13]), none = num(ARGV[14]), region = ARGV[15], schemes = ARGV[16], tags = ARGV[17],
    tier = num(ARGV[18]), session = ARGV[19], avoid = avoid, host = host, suspects = num(meta[3]) + SUSPECT_KEEP > now,
    draw = draw,
  })
  if p then after = 0 end
end
if after > 0 then
  if r then turn_keep(h, key, r, after) end
  if r or not h.new then host_put(h) end
  return { 'wait', tostring(after), why, l and '1' or '0' }
end

turn_take(h, key, r, interval)
host_put(h)
local fresh = not l
if fresh then l = { id = id, abort = 0, proxy = '', holder = holder, again = 0, till = 0 } end
l.fence = redis.call('HINCRBY', META, 'fence', 1)
if p then
  if fresh then p.inuse = p.inuse + 1 end
  p.last = now
  p.ready = now
  if p.reuse > 0 then p.ready = nowc + p.reuse end
  proxy_put(p)
  l.proxy = p.id
  if fresh then
    l.till = p.expires
    if ARGV[19] ~= '' then session_keep(ARGV[19], p.id, num(ARGV[20])) end
  end
end
l.host, l.granted = host, now
lease_extend(l, ttl)
lease_put(l)
if fresh then redis.call('RPUSH', DEADLINES, l.deadline .. ' ' .. id) end
return lease_reply(l)
