-- Takes KEYS[1] for ARGV[1], my token, for ARGV[2] ms, with one entry. Returns 1, or nil when the lock is taken.
-- The lock is a list with the token once per entry: removing an entry needs no memory, while decrementing a counter
-- would.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
end
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
