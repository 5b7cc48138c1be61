-- Adds one to the guarded resource in KEYS[2]. Returns 1.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ERR the guarded resource is gone')
end
redis.call('INCR', KEYS[2])
return 1
