-- Joins the readers of KEYS[1], the writer's key, for ARGV[1], my token, for ARGV[2] ms. KEYS[2]: the readers, each
-- with the end of its lease by the server's clock; KEYS[3]: the waiting writers, each with the end of its reservation.
-- Returns 1, or nil when there is a writer, or a waiting writer that goes first.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local past = '(' .. string.format('%.0f', now)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', past)
if redis.call('ZCARD', KEYS[3]) > 0 then
    return nil
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', past)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
-- The set expires with its last lease, even if no reader ever leaves it.
redis.call('PEXPIREAT', KEYS[2], redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] + 1)
return 1
