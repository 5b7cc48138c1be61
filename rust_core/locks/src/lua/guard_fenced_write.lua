-- Counts a write with the fence ARGV[2] in KEYS[2], keeps the fence in KEYS[3], and returns 1. Returns nil if a write with
-- a higher fence was accepted before.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ERR the guarded resource is gone')
end
local highest = redis.call('GET', KEYS[3])
if highest and tonumber(highest) > tonumber(ARGV[2]) then
    return nil
end
redis.call('SET', KEYS[3], ARGV[2])
redis.call('INCR', KEYS[2])
return 1
