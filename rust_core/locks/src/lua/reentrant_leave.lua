-- Leaves ARGV[2] entries of KEYS[1], only while ARGV[1], my token, owns it; the last entry deletes the list.
-- Returns the number of entries left, or nil when the lock is gone, or another client's. A server without free memory
-- still allows all of these commands.
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then
    return nil
end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
return redis.call('LLEN', KEYS[1])
