-- Ends queued URLs as skipped.
--
-- ARGV  1 reason; 2 how many
-- OUT   {"ok", id, packed, …} or {"norun"}
-- HOLDS a skipped URL is answered again until an ack confirms its record's file, so
--       that a caller that dies in between loses no record.
local UNWRITTEN = KEYS[12]
if call('HEXISTS', META, 'state') == 0 then return {'norun'} end
local out, want, skipped = {'ok'}, tonumber(ARGV[2]), 0
local function put(u)
  out[#out + 1] = u.id
  out[#out + 1] = u.packed
  want = want - 1
end

-- Confirmed ones leave at the head; one in the middle waits for those before it.
local pending = call('LRANGE', UNWRITTEN, 0, want - 1)
local leaving = true
for _, id in ipairs(pending) do
  local u = url_get(id)
  if u and u.state == 's' and u.file == '' then
    put(u)
    leaving = false
  elseif leaving then
    call('LPOP', UNWRITTEN)
  end
end
while want > 0 do
  local name = call('LINDEX', RING, 0)
  if not name then break end
  local h = host_get(name)
  local u = queue_pop(h)
  while u do
    u.state, u.word = 's', ARGV[1]
    url_put(u)
    call('RPUSH', UNWRITTEN, u.id)
    skipped = skipped + 1
    put(u)
    u = want > 0 and queue_pop(h) or nil
  end
  if h.queued == 0 then
    call('LPOP', RING)
    h.ringed = 0
  end
  host_put(h)
end
if skipped > 0 then count('q', 's', skipped) end
return out
