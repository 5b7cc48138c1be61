-- Takes one of ARGV[2] permits for ARGV[1], my token, for ARGV[3] ms. KEYS[1]: the tokens of the holders, each with the
-- end of its lease by the server's clock. Returns 1, or nil when all permits are taken.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
    return nil
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
-- The set expires with its last lease, even if no holder ever leaves it.
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] + 1)
return 1
