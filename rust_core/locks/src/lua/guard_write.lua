-- Sets the guarded resource in KEYS[2] to ARGV[2], whatever it holds by now. Returns 1.
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ERR the guarded resource is gone')
end
redis.call('SET', KEYS[2], ARGV[2])
return 1
