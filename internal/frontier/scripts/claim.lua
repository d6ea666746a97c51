-- Claims queued URLs for the current feeder, up to a number a host.
--
-- ARGV  1 the feeder's number; 2 token of this call; then for each quota: host, number
-- OUT   {"ok", id, packed, …}, {"norun"} or {"fenced"}
-- HOLDS only the current feeder claims, and only in a run that loads or runs; each
--       claim has an epoch of its own; the same token gets the same claims; at most 1,000 a call.
local m = call('HMGET', META, 'state', 'feeder', 'claim.token', 'claim.ids')
local state = m[1]
if not state then return {'norun'} end
if m[2] ~= ARGV[1] then return {'fenced'} end
local out = {'ok'}
local function put(u)
  out[#out + 1] = u.id
  out[#out + 1] = u.packed
end

if m[3] == ARGV[2] then
  for id in string.gmatch(m[4], '%S+') do
    local u = url_get(id)
    if u and (u.state == 'r' or u.state == 'w') then put(u) end
  end
  return out
end
if state ~= 'loading' and state ~= 'running' then return out end

local at, epoch, ids = int(now()), tonumber(call('HGET', META, 'epoch')), {}
for i = 3, #ARGV, 2 do
  local h = host_get(ARGV[i])
  local want = math.min(tonumber(ARGV[i + 1]), h.queued, 1000 - #ids)
  local got = 0
  while got < want do
    local u = queue_pop(h)
    if not u then break end
    epoch = epoch + 1
    u.state, u.epoch, u.since, u.ends, u.word, u.token, u.run = 'r', int(epoch), at, '', '', '', ''
    url_put(u)
    claim_add(epoch, u.id)
    put(u)
    ids[#ids + 1] = u.id
    got = got + 1
  end
  if got > 0 then
    h.running = h.running + got
    host_put(h)
  end
end
if #ids > 0 then
  count('q', 'r', #ids)
  call('HSET', META, 'epoch', int(epoch), 'claim.token', ARGV[2], 'claim.ids', table.concat(ids, ' '))
end
return out
