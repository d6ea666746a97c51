-- Accepts requests into the run: those not seen before are queued.
--
-- ARGV  1 batch number, "" for an addition; 2 token of this call; then for each request:
--       id; host; depth, extras (0 1), method, parent, URL packed with tabs; extras JSON or ""
-- OUT   {"ok", added, seen}, {"norun"}, {"ended"} or {"sealed"}
-- HOLDS an id is accepted once; a batch is counted once and answers the same when run again.
local EXTRAS, BATCHES = KEYS[3], KEYS[11]
local m = call('HMGET', META, 'state', 'sealed', 'add.token', 'add.answer')
local state, batch, token = m[1], ARGV[1], ARGV[2]
if not state then return {'norun'} end

local answer
if batch ~= '' then answer = call('HGET', BATCHES, batch) elseif m[3] == token then answer = m[4] end
if answer then
  local a, s = string.match(answer, '^(%d+) (%d+)$')
  return {'ok', a, s}
end
if state ~= 'loading' and state ~= 'running' and state ~= 'paused' then return {'ended'} end
if batch ~= '' and m[2] == '1' then return {'sealed'} end

local at = int(now())
local hosts, order, puts = {}, {}, {}
local added, seen = 0, 0
local function flush()
  if #puts > 0 then call('HSET', QUEUE, unpack(puts)) end
  puts = {}
end

for i = 3, #ARGV, 4 do
  local id, host = ARGV[i], ARGV[i + 1]
  if call('HSETNX', URLS, id, 'q\t0\t\t\t\t\t\t\t\t\t' .. host .. '\t' .. at .. '\t' .. ARGV[i + 2]) == 1 then
    if ARGV[i + 3] ~= '' then call('HSET', EXTRAS, id, ARGV[i + 3]) end
    local h = hosts[host]
    if not h then
      h = host_get(host)
      hosts[host] = h
      order[#order + 1] = h
    end
    puts[#puts + 1] = host .. '\0' .. int(h.tail)
    puts[#puts + 1] = id
    if #puts >= 200 then flush() end
    h.tail, h.queued = h.tail + 1, h.queued + 1
    added = added + 1
  else
    seen = seen + 1
  end
end
flush()
for _, h in ipairs(order) do
  ring_in(h)
  host_put(h)
end
if added > 0 then
  call('HINCRBY', META, 'n:q', added)
  call('HINCRBY', META, 'accepted', added)
end
answer = int(added) .. ' ' .. int(seen)
if batch ~= '' then
  call('HSET', BATCHES, batch, answer)
else
  call('HSET', META, 'add.token', token, 'add.answer', answer)
end
return {'ok', int(added), int(seen)}
