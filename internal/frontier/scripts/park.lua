-- Moves a running URL to waiting, or back.
--
-- ARGV  1 id; 2 replay; 3 why; 4 wait in ms, 0 for back; 5 token of the pass
-- OUT   "ok", "norun" or "nourl"
-- HOLDS an ended or queued URL stays what it is; a token is counted as a wait once.
if call('HEXISTS', META, 'state') == 0 then return 'norun' end
local u = url_get(ARGV[1])
if not u then return 'nourl' end
if u.replay ~= ARGV[2] then return 'ok' end
local wait = tonumber(ARGV[4])
if wait <= 0 then
  if u.state ~= 'w' then return 'ok' end
  wait_drop(u.host, u.word)
  u.state, u.ends, u.word = 'r', '', ''
  url_put(u)
  local h = host_get(u.host)
  h.running = h.running + 1
  host_put(h)
  count('w', 'r', 1)
  return 'ok'
end
if u.token == ARGV[5] then return 'ok' end
if u.state == 'w' then
  wait_drop(u.host, u.word)
elseif u.state == 'r' then
  local h = host_get(u.host)
  h.running = h.running - 1
  host_put(h)
  count('r', 'w', 1)
else
  return 'ok'
end
local ends = now() + wait
wait_add(u.host, ARGV[3], ends)
u.state, u.ends, u.word, u.token = 'w', int(ends), ARGV[3], ARGV[5]
url_put(u)
call('HINCRBY', META, 'waits', 1)
return 'ok'
