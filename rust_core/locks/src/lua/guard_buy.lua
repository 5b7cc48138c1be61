-- Takes one from the guarded stock in KEYS[2], and returns 1; returns nil if none is left.
local stock = redis.call('GET', KEYS[2])
if not stock then
    return redis.error_reply('ERR the guarded resource is gone')
end
if tonumber(stock) < 1 then
    return nil
end
redis.call('DECR', KEYS[2])
return 1
