-- Leaves the queue, and when the lock is mine, hands it to the first in the queue who is alive and rings his bell.
-- KEYS: the lock; the queue, a sorted set by order of arrival; until when each waiter counts as alive, a hash; what
-- bells are called. ARGV: my token; the lease in ms; 1 when I may be blocked at my own bell.
-- 1: the lock was mine. 0: it was not, or no longer.
local lock, queue, deadlines, bells = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, lease, listens = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'

if listens then
    -- Whoever is blocked is woken at once, by a number that hands nothing over; a bell that nobody hears must not stay.
    redis.call('RPUSH', bells .. ':' .. me, 0)
    redis.call('PEXPIRE', bells .. ':' .. me, 1000)
end
if redis.call('GET', lock) ~= me then
    redis.call('ZREM', queue, me)
    redis.call('HDEL', deadlines, me)
    return 0
end

-- Whoever holds the lock has left the queue already.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
while true do
    local first = redis.call('ZPOPMIN', queue)[1]
    if not first then
        redis.call('DEL', lock)
        return 1
    end
    local left = (redis.call('HGET', deadlines, first) or 0) - now
    redis.call('HDEL', deadlines, first)
    if left > 0 then
        -- His at once, so that nobody overtakes him; but only for as long as he counts as alive: if he died, the lock
        -- is free again no later than his place would have been. He begins the whole lease himself. The ring says what
        -- was left of his time, so that he knows when, after his last beat, the lock became his.
        local lasts = math.min(left, lease)
        redis.call('SET', lock, first, 'PX', lasts)
        redis.call('RPUSH', bells .. ':' .. first, left)
        redis.call('PEXPIRE', bells .. ':' .. first, lasts)
        return 1
    end
end
