-- Returns the value of the guarded resource in KEYS[2], and keeps the fence ARGV[2] in KEYS[3]: from now on a lower fence
-- is refused. Returns nil if a higher fence came before.
local value = redis.call('GET', KEYS[2])
if not value then
    return redis.error_reply('ERR the guarded resource is gone')
end
local highest = redis.call('GET', KEYS[3])
if highest and tonumber(highest) > tonumber(ARGV[2]) then
    return nil
end
redis.call('SET', KEYS[3], ARGV[2])
return tonumber(value)
