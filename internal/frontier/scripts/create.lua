-- Creates a run that loads.
--
-- ARGV  1 campaign; 2 run; 3 spec JSON; 4 digest; 5 label; 6 total
-- OUT   "new", or "old" for a run that is there
-- HOLDS a run is created once; it keeps the input it was created with.
if call('HEXISTS', META, 'state') == 1 then return 'old' end
call('HSET', META, 'state', 'loading', 'sealed', '0', 'campaign', ARGV[1], 'run', ARGV[2], 'spec', ARGV[3],
  'digest', ARGV[4], 'label', ARGV[5], 'total', ARGV[6], 'created', int(now()), 'feeder', '0', 'epoch', '0')
return 'new'
