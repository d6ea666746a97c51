-- Ends a URL.
--
-- ARGV  1 id; 2 replay; 3 state (c f s x); 4 reason; 5 file; 6 proxy; 7 bytes; 8 wire bytes;
--       9 retries; 10 proxy faults
-- OUT   {"first", file}, {"late", confirmed file}, {"norun"} or {"nourl"}
-- HOLDS the first ack of an (id, replay) ends it and is counted; a later one changes nothing,
--       except that it confirms the file of a record that had none in the same end.
if call('HEXISTS', META, 'state') == 0 then return {'norun'} end
local u = url_get(ARGV[1])
if not u then return {'nourl'} end
if u.replay ~= ARGV[2] then return {'late', ''} end
if u.state ~= 'q' and u.state ~= 'r' and u.state ~= 'w' then
  if u.file == '' and ARGV[5] ~= '' and u.state == ARGV[3] then
    u.file = ARGV[5]
    url_put(u)
  end
  return {'late', u.file}
end

local h = host_get(u.host)
local from = u.state
depart(u, h)
host_put(h)
u.state, u.word, u.file, u.proxy = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
u.epoch, u.since, u.ends, u.token, u.run = '', '', '', '', ''
url_put(u)
count(from, u.state, 1)
if u.state == 'f' then
  call('RPUSH', KEYS[9], u.id .. '\t' .. u.replay)
  call('HINCRBY', KEYS[10], u.word, 1)
end
if ARGV[7] ~= '0' then call('HINCRBY', META, 'bytes', ARGV[7]) end
if ARGV[8] ~= '0' then call('HINCRBY', META, 'wire', ARGV[8]) end
if ARGV[9] ~= '0' then call('HINCRBY', META, 'retries', ARGV[9]) end
if ARGV[10] ~= '0' then call('HINCRBY', META, 'faults', ARGV[10]) end
return {'first', u.file}
