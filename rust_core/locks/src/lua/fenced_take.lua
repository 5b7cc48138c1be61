-- Takes KEYS[1] for ARGV[1], my token, for ARGV[2] ms, and counts the grant in KEYS[2], which never expires.
-- Returns the number of the grant, or nil when the lock is taken.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
end
-- The counter first: if it cannot be incremented, nothing is taken.
local fence = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
