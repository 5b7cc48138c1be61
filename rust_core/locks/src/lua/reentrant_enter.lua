-- Enters KEYS[1] once more, only while ARGV[1], my token, owns it, and sets its lease anew, to ARGV[2] ms.
-- The number of entries, or nil when it is gone, or another's: it is never taken here.
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
    return nil
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('HINCRBY', KEYS[1], 'entries', 1)
