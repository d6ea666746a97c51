-- lib_lease: the lease and its tombstone.
--
-- LEASES[id] = fence|deadline|granted|abort|proxy|host|holder|again|until|
--   granted 0: taken over by another holder that still waits for the host's
--   turn; it keeps the proxy, and no host (host is empty).
--   again 1: another holder had it before this one.
--   until: when its proxy expires, which no deadline passes; 0: never.
-- TOMBS[id] = ended|fence|how|      how: released, reaped, settled, unknown
-- OUTCOMES[id] = what was committed, kept until the tombstone goes
-- DEADLINES entries: "look id"; TOMBQ entries: "trim-from id"
--
-- Invariants: an id is in LEASES or in TOMBS, never in both, and never leaves
-- TOMBS for LEASES; fences only grow; slots are freed exactly once.

local function lease_get(id)
  local s = redis.call('HGET', LEASES, id)
  if not s then return nil end
  local f = split(s)
  return {
    id = id, fence = num(f[1]), deadline = num(f[2]), granted = num(f[3]), abort = num(f[4]),
    proxy = f[5], host = f[6], holder = f[7], again = num(f[8]), till = num(f[9]),
  }
end

local function lease_put(l)
  redis.call('HSET', LEASES, l.id,
    table.concat({ l.fence, l.deadline, l.granted, l.abort, l.proxy, l.host, l.holder, l.again, l.till, '' }, '|'))
end

-- lease_extend moves the deadline to one ttl from now, or to its proxy's end.
local function lease_extend(l, ttl)
  l.deadline = now + ttl
  if l.till > 0 and l.till < l.deadline then l.deadline = l.till end
end

-- lease_reply is the answer to who holds the lease.
local function lease_reply(l)
  local config = ''
  if l.proxy ~= '' then config = redis.call('HGET', CONFIG, l.proxy) or '' end
  return { 'grant', tostring(l.fence), l.proxy, config, l.host, tostring(l.again), tostring(l.deadline - now) }
end

local function tomb_put(id, fence, how)
  redis.call('HSET', TOMBS, id, table.concat({ now, fence, how, '' }, '|'))
  redis.call('RPUSH', TOMBQ, now .. ' ' .. id)
end

-- lease_end frees the slots and leaves the tombstone. sample(p, h), if given, is
-- told the proxy's and the host's state before they are stored.
local function lease_end(l, how, sample)
  redis.call('HDEL', LEASES, l.id)
  local h = host_get(l.host)
  if l.proxy ~= '' then
    local p = proxy_get(l.proxy)
    if p then
      if sample then sample(p, h) end
      proxy_free(p)
    end
  end
  if not h.new then
    if h.open > 0 then h.open = h.open - 1 end
    host_put(h)
  end
  tomb_put(l.id, l.fence, how)
end

-- reap_due ends leases past their deadline among the first k of the queue, as
-- long as the head is due. The deadline is read again from the lease itself.
local function reap_due(k)
  local entries = redis.call('LRANGE', DEADLINES, 0, k - 1)
  for _, e in ipairs(entries) do
    local at, id = string.match(e, '^(%d+) (.*)$')
    if num(at) > now then return end
    redis.call('LPOP', DEADLINES)
    local l = lease_get(id)
    if l then
      if l.deadline <= now then
        lease_end(l, 'reaped')
      else
        redis.call('RPUSH', DEADLINES, l.deadline .. ' ' .. id)
      end
    end
  end
end

-- tombs_trim drops up to k tombstones older than keep.
local function tombs_trim(k, keep)
  local entries = redis.call('LRANGE', TOMBQ, 0, k - 1)
  local n = 0
  for _, e in ipairs(entries) do
    local at, id = string.match(e, '^(%d+) (.*)$')
    if num(at) + keep > now then break end
    redis.call('HDEL', TOMBS, id)
    redis.call('HDEL', OUTCOMES, id)
    n = n + 1
  end
  if n > 0 then redis.call('LTRIM', TOMBQ, n, -1) end
  return n
end
