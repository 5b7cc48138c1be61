-- Takes one from the guarded stock in KEYS[2], even if none is left. Returns 1.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ERR the guarded resource is gone')
end
redis.call('DECR', KEYS[2])
return 1
