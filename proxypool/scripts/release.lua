-- release: end a lease and take its one health sample.
--
-- ARGV: 1 lease, 2 proxy verdict, 3 pair verdict, 4 reason, 5 latency ms
-- Output: {"1" for the release that ended the lease else "0", "1" if an outcome was committed else "0", outcome}
-- Invariant: the first release frees and samples, later ones only answer; an
--   unknown id gets a tombstone, so that an acquire which arrives late is refused.

local l = lease_get(ARGV[1])
local first = '0'
if l then
  first = '1'
  lease_end(l, 'released', function(p, h)
    learn(p, h, { proxy = ARGV[2], pair = ARGV[3], reason = ARGV[4], latency = num(ARGV[5]), granted = l.granted })
  end)
elseif redis.call('HEXISTS', TOMBS, ARGV[1]) == 0 then
  tomb_put(ARGV[1], 0, 'unknown')
end
local o = redis.call('HGET', OUTCOMES, ARGV[1])
if o then return { first, '1', o } end
return { first, '0', '' }
