-- Sets the guarded resource in KEYS[2] to ARGV[3], and returns 1. Returns nil if a higher fence than ARGV[2] came before.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ERR the guarded resource is gone')
end
local highest = redis.call('GET', KEYS[3])
if highest and tonumber(highest) > tonumber(ARGV[2]) then
    return nil
end
redis.call('SET', KEYS[2], ARGV[3])
return 1
