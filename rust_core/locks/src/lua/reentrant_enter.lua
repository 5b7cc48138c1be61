-- Enters KEYS[1] once more, only while ARGV[1], my token, owns it, and sets its lease anew, to ARGV[2] ms.
-- The number of entries, or nil when it is gone, or another's: it is never taken here.
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then
    return nil
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('RPUSH', KEYS[1], ARGV[1])
