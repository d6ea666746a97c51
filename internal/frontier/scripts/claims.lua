-- Lists open claims by their epochs. Writes nothing.
--
-- ARGV  1 the epoch to go on after, 0 at first; 2 how many
-- OUT   {"ok", next epoch or "", now in ms, id, packed, …} or {"norun"}
-- HOLDS a claim that stays open during a walk is seen once; a call does a bounded amount of
--       work, so it may answer fewer than asked, none even, and still have a next.
local last = tonumber(call('HGET', META, 'epoch') or '-1')
if last < 0 then return {'norun'} end
local out = {'ok', '', int(now())}
local pos, want, budget = tonumber(ARGV[1]) + 1, tonumber(ARGV[2]), 64
local first, sizes = 0, {}
while pos <= last and want > 0 and budget > 0 do
  local b = math.floor(pos / 256)
  if b < first or b >= first + #sizes then
    local fields = {}
    for i = 0, 127 do fields[i + 1] = 'b' .. int(b + i) end
    first, sizes, budget = b, call('HMGET', CLAIMS, unpack(fields)), budget - 1
  end
  local stop = math.min(b * 256 + 255, last)
  if sizes[b - first + 1] then
    local fields = {}
    for e = pos, stop do fields[#fields + 1] = int(e) end
    budget = budget - 1
    for _, id in ipairs(call('HMGET', CLAIMS, unpack(fields))) do
      if want == 0 then break end
      if id then
        out[#out + 1] = id
        out[#out + 1] = url_get(id).packed
        want = want - 1
      end
      pos = pos + 1
    end
  else
    pos = stop + 1
  end
end
if pos <= last then out[2] = int(pos - 1) end
return out
