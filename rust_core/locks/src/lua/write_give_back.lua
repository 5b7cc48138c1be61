-- Deletes KEYS[1], the writer's key, only when it holds ARGV[1], my token, and takes back my claim among those who wait
-- to write, KEYS[2]. 1: deleted; 0: gone, or another's.
local deleted = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then
    deleted = redis.call('DEL', KEYS[1])
end
redis.call('ZREM', KEYS[2], ARGV[1])
return deleted
