-- Deletes KEYS[1] only if it still holds ARGV[1], my token, and publishes that on KEYS[2], the lock's channel.
-- 1: deleted; 0: gone, or another client's, and nothing is published.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], 'free')
return 1
