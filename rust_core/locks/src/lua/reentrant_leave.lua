-- Leaves ARGV[2] entries of KEYS[1], only while ARGV[1], my token, owns it; with the last one the list is gone.
-- The number of entries left, or nil when it is gone, or another's. A server without memory lets all of this pass.
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then
    return nil
end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
return redis.call('LLEN', KEYS[1])
