-- hop: move a lease to another host, for a redirect.
--
-- ARGV: 1 lease, 2 fence, 3 claimant, 4 host, 5 interval ms, 6 concurrency, 7 ttl ms, 8 grace ms of a turn
-- Output: {"grant", fence, proxy, its config, host, again, ms to the deadline} |
--   {"wait", ms, why, "1"} | {"stale"}
-- Invariant: the new host's turn is charged once, the old host's slot freed once;
--   after a wait the lease is where it was, and its deadline is extended.

local l = lease_get(ARGV[1])
if not l or l.fence ~= num(ARGV[2]) or l.deadline <= now or l.granted == 0 then return { 'stale' } end
local host, interval = ARGV[4], num(ARGV[5])
local key = host .. ' ' .. ARGV[3]
lease_extend(l, num(ARGV[7]))

if l.host ~= host then
  local h = host_get(host)
  local after, why, r = turn_check(h, key, interval, num(ARGV[6]), num(ARGV[8]))
  if after == 0 and l.proxy ~= '' then
    local pair = redis.call('HGET', PAIRS, l.proxy .. ' ' .. host)
    if pair then
      local f = split(pair)
      if f[2] == 'h' and num(f[1]) > now then
        after, why = num(f[1]) - now, 'proxies_busy'
        if r then turn_keep(h, key, r, after) end
      end
    end
  end
  if after > 0 then
    lease_put(l)
    if r or not h.new then host_put(h) end
    return { 'wait', tostring(after), why, '1' }
  end
  turn_take(h, key, r, interval)
  host_put(h)
  host_free(l.host)
  l.host = host
end
lease_put(l)
return lease_reply(l)
