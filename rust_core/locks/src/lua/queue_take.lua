-- Joins the queue, shows that I live, and takes the lock when it is my turn. Sent again with each beat, and when my bell
-- has rung: a lock that was handed to me then begins its whole lease. Who rings says how long I still counted as alive.
-- KEYS: the lock; the queue, a sorted set by order of arrival; until when each waiter counts as alive, a hash; what
-- bells are called. ARGV: my token; the lease in ms; for how many ms I count as alive, 0 when I do not wait at all.
-- 0: taken. 1: I wait where I was. 2: I wait behind all others, from now on. -1: not taken, and I do not wait.
local lock, queue, deadlines, bells = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, lease, alive = ARGV[1], ARGV[2], tonumber(ARGV[3])

local holder = redis.call('GET', lock)
if holder == me then
    redis.call('PEXPIRE', lock, lease)
    return 0
end

-- The server's clock, since those of the waiters do not agree.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local answer = -1
if alive > 0 then
    answer = 1
    if not redis.call('ZSCORE', queue, me) then
        local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
        redis.call('ZADD', queue, (last or 0) + 1, me)
        answer = 2
    end
    redis.call('HSET', deadlines, me, now + alive)
    -- Both end by themselves when nobody in them is alive any more.
    for _, key in ipairs({ queue, deadlines }) do
        if redis.call('PTTL', key) < alive then
            redis.call('PEXPIRE', key, alive)
        end
    end
end
if holder then
    return answer
end

-- Free: an earlier holder let it expire. It goes to the first who is alive, whoever asks.
while true do
    local first = redis.call('ZPOPMIN', queue)[1]
    if not first or first == me then
        redis.call('HDEL', deadlines, me)
        redis.call('SET', lock, me, 'PX', lease)
        return 0
    end
    local left = (redis.call('HGET', deadlines, first) or 0) - now
    redis.call('HDEL', deadlines, first)
    if left > 0 then
        -- See queue_leave.lua.
        local lasts = math.min(left, tonumber(lease))
        redis.call('SET', lock, first, 'PX', lasts)
        redis.call('RPUSH', bells .. ':' .. first, left)
        redis.call('PEXPIRE', bells .. ':' .. first, lasts)
        return answer
    end
end
