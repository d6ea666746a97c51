-- lib_base: the keys, the clock and the packing that every script shares.
--
-- KEYS: always all eighteen, in this order (keys.go builds them).
-- Times are milliseconds of Redis' own clock. Packed values are fields that
-- each end in '|'; new fields are added at the end, so that old values still read.

local META, LEASES, TOMBS, OUTCOMES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local DEADLINES, TOMBQ, HOSTS, HOSTQ = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local TURNS, TURNQ, PROXIES, CONFIG = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local INDEX, PAIRS, PAIRQ, IDENTS = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local SESSIONS, SESSQ = KEYS[17], KEYS[18]

local clock = redis.call('TIME')
local micros = tonumber(clock[2])
local now = tonumber(clock[1]) * 1000 + math.floor(micros / 1000)
-- now rounded up: intervals are counted from it, so that two grants are never
-- a part of a millisecond too close.
local nowc = now
if micros % 1000 > 0 then nowc = now + 1 end

local function split(s)
  local t, n = {}, 0
  for f in string.gmatch(s, '([^|]*)|') do
    n = n + 1
    t[n] = f
  end
  return t
end

local function num(s) return tonumber(s) or 0 end

-- rotate looks at the first k entries "at rest" of a list that is ordered only
-- roughly: an entry that is due goes to fn, which returns nil to drop it or the
-- time of the next look; others move to the end.
local function rotate(list, k, fn)
  local entries = redis.call('LRANGE', list, 0, k - 1)
  if #entries == 0 then return 0 end
  local back = {}
  for _, e in ipairs(entries) do
    local at, rest = string.match(e, '^(%d+) (.*)$')
    local again = num(at)
    if again <= now then again = fn(rest) end
    if again then back[#back + 1] = again .. ' ' .. rest end
  end
  redis.call('LTRIM', list, #entries, -1)
  if #back > 0 then redis.call('RPUSH', list, unpack(back)) end
  return #entries
end
