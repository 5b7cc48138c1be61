-- Deletes KEYS[1] only if it still holds ARGV[1], my token. 1: deleted; 0: gone, or another client's.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
