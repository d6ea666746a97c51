-- reap: end leases past their deadline, and trim what nobody asks for any more.
--
-- ARGV: 1 entries to look at, 2 tombstones' keep ms, 3 grace ms of a turn
-- Output: {leases reaped, entries looked at}
-- Invariant: the deadline is checked again here, in the script that frees: a
--   renewal that came first wins. No health sample is taken. Entries whose lease
--   has ended are dropped.

local k, reaped = num(ARGV[1]), 0
local entries = redis.call('LRANGE', DEADLINES, 0, k - 1)
if #entries > 0 then redis.call('LTRIM', DEADLINES, #entries, -1) end
for _, e in ipairs(entries) do
  local id = string.match(e, '^%d+ (.*)$')
  local l = lease_get(id)
  if l then
    if l.deadline <= now then
      lease_end(l, 'reaped')
      reaped = reaped + 1
    else
      redis.call('RPUSH', DEADLINES, l.deadline .. ' ' .. id)
    end
  end
end
tombs_trim(k, num(ARGV[2]))
turns_forget(k, num(ARGV[3]))
pairs_forget(k)
sessions_forget(k)
hosts_forget(k)
return { tostring(reaped), tostring(#entries) }
