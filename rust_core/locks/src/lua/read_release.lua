-- Leaves KEYS[2], the readers of KEYS[1], for ARGV[1], my token. 1: I was a reader; 0: my lease had ended.
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends then
    return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
local time = redis.call('TIME')
if tonumber(ends) < time[1] * 1000 + math.floor(time[2] / 1000) then
    return 0
end
return 1
