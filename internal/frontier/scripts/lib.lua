-- What the scripts of a run share; it is put before each of them.
--
-- KEYS  1 meta     hash: state, sealed, feeder, epoch, the counts (n:q … n:x, accepted …)
--       2 urls     hash: id -> packed URL
--       3 extras   hash: id -> JSON of headers, body, key, meta
--       4 queue    hash: host \0 number -> id, a queue a host
--       5 hosts    hash: host -> "head tail queued running ringed"
--       6 ring     list: the hosts with a queue, for fair turns
--       7 claims   hash: epoch -> id of the open claims; b<k> -> how many of epochs 256k … 256k+255
--       8 waits    hash: host \0 why -> "count until"
--       9 dead     list: "id \t replay" of the failed
--      10 reasons  hash: reason -> failed URLs
--      11 batches  hash: batch -> "added seen"
--      12 unwritten list: ids skipped by skip.lua whose record is not confirmed yet
--
-- A packed URL: state, replay, epoch, since, until, word, token, run id, file, proxy,
-- host, then accepted, depth, extras, method, parent, URL; separated by tabs.
-- state is q r w c f s x: queued, running, waiting, completed, failed, skipped, canceled.
local META, URLS, QUEUE, HOSTS, RING = KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6]
local CLAIMS, WAITS = KEYS[7], KEYS[8]
local call = redis.call

local function int(n) return string.format('%.0f', n) end

local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local PACKED = '^' .. string.rep('([^\t]*)\t', 11) .. '(.*)$'

local function url_get(id)
  local v = call('HGET', URLS, id)
  if not v then return nil end
  local u = {id = id, packed = v}
  u.state, u.replay, u.epoch, u.since, u.ends, u.word, u.token, u.run, u.file, u.proxy, u.host, u.rest =
    string.match(v, PACKED)
  return u
end

local function url_put(u)
  u.packed = table.concat({u.state, u.replay, u.epoch, u.since, u.ends, u.word, u.token, u.run,
    u.file, u.proxy, u.host, u.rest}, '\t')
  call('HSET', URLS, u.id, u.packed)
end

local function host_get(name)
  local v = call('HGET', HOSTS, name) or '0 0 0 0 0'
  local a, b, c, d, e = string.match(v, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {name = name, head = tonumber(a), tail = tonumber(b), queued = tonumber(c),
    running = tonumber(d), ringed = tonumber(e)}
end

local function host_put(h)
  call('HSET', HOSTS, h.name, int(h.head) .. ' ' .. int(h.tail) .. ' ' .. int(h.queued) .. ' '
    .. int(h.running) .. ' ' .. int(h.ringed))
end

local function ring_in(h)
  if h.ringed == 0 then
    call('RPUSH', RING, h.name)
    h.ringed = 1
  end
end

-- queue_pop returns the host's next queued URL, nil at the end. An entry whose URL
-- has left the queue otherwise is passed over.
local function queue_pop(h)
  while h.queued > 0 and h.head < h.tail do
    local field = h.name .. '\0' .. int(h.head)
    local id = call('HGET', QUEUE, field)
    call('HDEL', QUEUE, field)
    h.head = h.head + 1
    local u = id and url_get(id)
    if u and u.state == 'q' then
      h.queued = h.queued - 1
      return u
    end
  end
  return nil
end

local function count(from, to, n)
  call('HINCRBY', META, 'n:' .. from, -n)
  call('HINCRBY', META, 'n:' .. to, n)
end

local function claim_add(epoch, id)
  call('HSET', CLAIMS, int(epoch), id)
  call('HINCRBY', CLAIMS, 'b' .. int(math.floor(epoch / 256)), 1)
end

local function claim_drop(epoch)
  if call('HDEL', CLAIMS, epoch) == 0 then return end
  local bucket = 'b' .. int(math.floor(tonumber(epoch) / 256))
  if call('HINCRBY', CLAIMS, bucket, -1) <= 0 then call('HDEL', CLAIMS, bucket) end
end

local function wait_add(host, why, ends)
  local field = host .. '\0' .. why
  local n, last = string.match(call('HGET', WAITS, field) or '0 0', '^(%d+) (%d+)$')
  if tonumber(last) > ends then ends = tonumber(last) end
  call('HSET', WAITS, field, int(n + 1) .. ' ' .. int(ends))
end

local function wait_drop(host, why)
  local field = host .. '\0' .. why
  local n, last = string.match(call('HGET', WAITS, field) or '0 0', '^(%d+) (%d+)$')
  if tonumber(n) > 1 then
    call('HSET', WAITS, field, int(n - 1) .. ' ' .. last)
  else
    call('HDEL', WAITS, field)
  end
end

-- depart takes a URL out of the books of the state that it leaves for a queue or an end.
local function depart(u, h)
  if u.state == 'q' then
    h.queued = h.queued - 1
    return
  end
  if u.state == 'w' then wait_drop(u.host, u.word) else h.running = h.running - 1 end
  claim_drop(u.epoch)
end
