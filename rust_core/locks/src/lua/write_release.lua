-- Deletes KEYS[1], the writer's key, only if it holds ARGV[1], my token, and removes my reservation from KEYS[2], the
-- waiting writers. 1: deleted; 0: gone, or another client's.
local deleted = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then
    deleted = redis.call('DEL', KEYS[1])
end
redis.call('ZREM', KEYS[2], ARGV[1])
return deleted
