-- Returns the value of the guarded resource in KEYS[2].
local value = redis.call('GET', KEYS[2])
if not value then
    return redis.error_reply('ERR the guarded resource is gone')
end
return tonumber(value)
