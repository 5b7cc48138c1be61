-- Enters KEYS[1] once more, only while ARGV[1], my token, owns it, and renews its lease to ARGV[2] ms.
-- Returns the number of entries, or nil when the lock is gone, or another client's: this script never takes it.
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then
    return nil
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('RPUSH', KEYS[1], ARGV[1])
