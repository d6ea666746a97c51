-- Moves a run between its states.
--
-- ARGV  1 seal | pause | resume | cancel | finish
-- OUT   the run's state, "norun", or "ended" for what an ended run refuses
-- HOLDS finished and canceled are ends; an end needs every accepted URL ended and the input
--       complete (a canceling run takes no more); each verb may be run again.
local m = call('HMGET', META, 'state', 'sealed', 'n:q', 'n:r', 'n:w')
local state, verb = m[1], ARGV[1]
if not state then return 'norun' end
local over = state == 'finished' or state == 'canceled'
local open = state == 'loading' or state == 'running' or state == 'paused'

local function set(s)
  state = s
  call('HSET', META, 'state', s)
  return s
end

if verb == 'seal' then
  call('HSET', META, 'sealed', '1')
  if state == 'loading' then return set('running') end
  return state
elseif verb == 'pause' then
  if not open then return 'ended' end
  return set('paused')
elseif verb == 'resume' then
  if not open then return 'ended' end
  if state ~= 'paused' then return state end
  return set(m[2] == '1' and 'running' or 'loading')
elseif verb == 'cancel' then
  if state == 'finished' then return 'ended' end
  if open then return set('canceling') end
  return state
end

if over or (m[2] ~= '1' and state ~= 'canceling') then return state end
for i = 3, 5 do
  if tonumber(m[i] or '0') > 0 then return state end
end
call('HSET', META, 'ended', int(now()))
return set(state == 'canceling' and 'canceled' or 'finished')
