-- Gives a claim back to the head of its host's queue.
--
-- ARGV  1 id; 2 epoch
-- OUT   "ok", "norun", or "no" when the epoch is not the open claim's
-- HOLDS a claim is given back once; the next one gets an epoch of its own.
if call('HEXISTS', META, 'state') == 0 then return 'norun' end
local u = url_get(ARGV[1])
if not u or u.epoch ~= ARGV[2] or (u.state ~= 'r' and u.state ~= 'w') then return 'no' end
local h = host_get(u.host)
local from = u.state
depart(u, h)
h.head, h.queued = h.head - 1, h.queued + 1
call('HSET', QUEUE, h.name .. '\0' .. int(h.head), u.id)
ring_in(h)
host_put(h)
u.state, u.epoch, u.since, u.ends, u.word, u.token, u.run = 'q', '', '', '', '', '', ''
url_put(u)
count(from, 'q', 1)
return 'ok'
