-- Takes KEYS[1] for ARGV[1], my token, for ARGV[2] ms, with one entry. 1, or nil when the lock is taken.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'entries', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
