-- Takes KEYS[1] to write, for ARGV[1], my token, for ARGV[2] ms. KEYS[2]: the readers, each with the end of its lease
-- by the server's clock; KEYS[3]: the waiting writers, each with the end of its reservation, which new readers respect.
-- Returns 1, or nil when there are readers or a writer; then I reserve the next turn for ARGV[3] ms, unless that is 0.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. string.format('%.0f', now))
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('ZCARD', KEYS[2]) == 0 then
    redis.call('ZREM', KEYS[3], ARGV[1])
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return 1
end
if ARGV[3] ~= '0' then
    redis.call('ZADD', KEYS[3], now + ARGV[3], ARGV[1])
    redis.call('PEXPIREAT', KEYS[3], redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] + 1)
end
return nil
