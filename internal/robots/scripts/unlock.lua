-- Gives an origin's lock back.
-- KEYS[1]  the lock
-- ARGV[1]  holder
-- Returns  1 if it was the holder's, 0 if not
-- Invariant: only the holder frees.
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
