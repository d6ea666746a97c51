-- lib_host: a host's slot and the turns reserved there.
--
-- HOSTS[host] = tat|next|last|nb|shift|open|res|line|seen|
--   tat    the first turn that nobody has reserved
--   next   the earliest grant after the last one; last: that one
--   nb     not before: the host is closed until then
--   shift  by how much closings have moved the turns reserved so far
--   open   leases open at the host; res: turns reserved
--   line   the end of the line of those who came for their turn but found
--          another's grant too close
--   seen   the latest outcome of the last few proxies here (lib_verdict.lua)
-- TURNS[host .. ' ' .. claimant] = base|stamp|inline|busy|   turn = base + shift
-- TURNQ entries: "look stamp host claimant"; HOSTQ entries: "look host"
--
-- Invariants: no grant before nb; two grants at least the interval apart, by the
-- grants and not by the turns; open never passes the concurrency asked for.

local function host_get(host)
  local s = redis.call('HGET', HOSTS, host)
  if not s then
    return { tat = 0, next = 0, last = 0, nb = 0, shift = 0, open = 0, res = 0, line = 0, seen = '', host = host, new = true }
  end
  local f = split(s)
  return {
    tat = num(f[1]), next = num(f[2]), last = num(f[3]), nb = num(f[4]), shift = num(f[5]),
    open = num(f[6]), res = num(f[7]), line = num(f[8]), seen = f[9] or '', host = host,
  }
end

local function host_put(h)
  redis.call('HSET', HOSTS, h.host, table.concat({ h.tat, h.next, h.last, h.nb, h.shift, h.open, h.res, h.line, h.seen, '' }, '|'))
  if h.new then
    redis.call('RPUSH', HOSTQ, (now + 60000) .. ' ' .. h.host)
    h.new = false
  end
end

local function host_free(host)
  if host == '' then return end
  local h = host_get(host)
  if h.open > 0 then
    h.open = h.open - 1
    host_put(h)
  end
end

-- host_close shuts the host until nb. The turns reserved there all move by the
-- time that the closing adds, so their order and spacing stay.
local function host_close(h, nb)
  local from = math.max(now, h.nb)
  if nb <= from then return end
  local by = nb - from
  h.shift = h.shift + by
  h.tat = math.max(h.tat + by, nb)
  h.line = math.max(h.line + by, nb)
  h.nb = nb
end

local function turn_put(h, key, r)
  redis.call('HSET', TURNS, key, table.concat({ r.base, r.stamp, r.inline, r.busy, '' }, '|'))
  if r.new then
    redis.call('RPUSH', TURNQ, (r.base + h.shift) .. ' ' .. r.stamp .. ' ' .. key)
    h.res = h.res + 1
    r.new = false
  end
end

local function turn_drop(h, key)
  if redis.call('HDEL', TURNS, key) == 1 and h.res > 0 then h.res = h.res - 1 end
end

local function turn_get(h, key, grace)
  local s = redis.call('HGET', TURNS, key)
  if not s then return nil end
  local f = split(s)
  local r = { base = num(f[1]), stamp = f[2], inline = num(f[3]), busy = num(f[4]) }
  if math.max(r.base + h.shift, h.nb) + grace < now then
    turn_drop(h, key)
    return nil
  end
  return r
end

-- tail is the first turn that nobody has: where none is reserved, what lapsed
-- ones left behind does not count.
local function tail(h)
  if h.res > 0 then return h.tat end
  return 0
end

local function turn_new(h, turn)
  if h.res == 0 then h.line = 0 end
  return { base = turn - h.shift, stamp = redis.call('HINCRBY', META, 'turn', 1), inline = 0, busy = 0, new = true }
end

-- turn_check answers 0 where the claimant's turn is now, and nothing is charged
-- yet; else how long to wait and why, the turn being kept for the claimant. The
-- caller stores h.
local function turn_check(h, key, interval, conc, grace)
  local r = turn_get(h, key, grace)
  local free = math.max(h.next, h.last + interval)
  local why = 'host_turn'
  if h.nb > now then why = 'retry_after' end
  if not r then
    local turn = math.max(h.nb, free, tail(h))
    if turn > now then
      r = turn_new(h, turn)
      h.tat = turn + interval
      turn_put(h, key, r)
      return turn - now, why, r
    end
  else
    local turn = math.max(r.base + h.shift, h.nb)
    if r.busy > 0 and why == 'host_turn' then why = 'host_busy' end
    if turn > now then return turn - now, why, r end
    if free > now then
      turn = free
      if r.inline == 0 then
        r.inline = 1
        turn = math.max(free, h.line)
        h.line = turn + interval
      end
      r.base = turn - h.shift
      turn_put(h, key, r)
      return turn - now, why, r
    end
  end
  if conc > 0 and h.open >= conc then
    if not r then
      r = turn_new(h, now)
      h.tat = math.max(tail(h), nowc) + interval
    end
    local after = math.min(250 * 2 ^ r.busy, 1000)
    r.busy = math.min(r.busy + 1, 2)
    r.inline = 1
    r.base = now + after - h.shift
    turn_put(h, key, r)
    return after, 'host_busy', r
  end
  return 0, '', r
end

-- turn_keep moves a turn that cannot be used now, so that it is not forgotten.
local function turn_keep(h, key, r, after)
  r.base = now + after - h.shift
  r.inline = 1
  turn_put(h, key, r)
end

-- turn_take charges the turn and opens a lease at the host.
local function turn_take(h, key, r, interval)
  local at = now
  if interval > 0 then at = nowc end
  if r then
    -- A claimant comes a little late, always; what its grant is late by, the
    -- turns behind it move, or each of them would come too early and ask again.
    local by = at - math.max(r.base + h.shift, h.nb)
    if by > 0 and by * 10 <= interval then
      h.shift = h.shift + by
      h.tat = h.tat + by
      h.line = h.line + by
    end
    turn_drop(h, key)
  else
    h.tat = math.max(tail(h), at) + interval
  end
  h.last = at
  h.next = at + interval
  h.open = h.open + 1
end

-- turns_forget drops turns that were not taken within the grace, k at a time.
local function turns_forget(k, grace)
  return rotate(TURNQ, k, function(rest)
    local stamp, key, host = string.match(rest, '^(%d+) ((%S+) .*)$')
    local s = redis.call('HGET', TURNS, key)
    if not s then return nil end
    local f = split(s)
    if f[2] ~= stamp then return nil end
    local h = host_get(host)
    local lapses = math.max(num(f[1]) + h.shift, h.nb) + grace
    if lapses >= now then return lapses + 1 end
    turn_drop(h, key)
    host_put(h)
    return nil
  end)
end

-- hosts_forget drops hosts whose state is what a new one's would be.
local function hosts_forget(k)
  return rotate(HOSTQ, k, function(host)
    local h = host_get(host)
    if h.new then return nil end
    if h.open == 0 and h.res == 0 and h.nb <= now and h.next + 3600000 <= now then
      redis.call('HDEL', HOSTS, host)
      return nil
    end
    return now + 60000
  end)
end
