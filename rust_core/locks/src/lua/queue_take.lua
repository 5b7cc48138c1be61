-- Joins the queue, shows that I am alive, and takes the lock when it is my turn. Sent again with each beat.
-- KEYS: the lock; the queue, a sorted set by order of arrival; the prefix of places, each a list that expires when its
-- waiter no longer counts as alive; the prefix of wake-up lists; the prefix of prepared lists, which wake a successor
-- once renamed.
-- ARGV: my token; the lease in ms; for how many ms I count as alive, 0 when I do not wait at all.
-- 0: taken. 1: I wait at my earlier place. 2: I wait at a new place, behind all others. -1: not taken, and I do not
-- wait.
local lock, queue, place = KEYS[1], KEYS[2], KEYS[3] .. ':' .. ARGV[1]
local me, lease, alive = ARGV[1], ARGV[2], tonumber(ARGV[3])

local held = redis.call('GET', lock)
local holder = held and string.sub(held, 1, #me)
if holder == me then
    redis.call('PEXPIRE', lock, lease)
    return 0
end

local placed
if held and string.sub(held, #me + 1) == me then
    -- I am the holder's successor: see queue_confirm.lua.
    local prepared = KEYS[5] .. ':' .. holder
    placed = redis.call('EXISTS', prepared) == 1
    if placed then
        redis.call('PEXPIRE', prepared, math.min(math.max(redis.call('PTTL', lock), 1), alive))
    elseif redis.call('DEL', place) == 1 then
        -- The lock was handed to me, or the holder's lease has ended: nothing else ends that list before my place.
        redis.call('ZREM', queue, me)
        redis.call('SET', lock, me, 'PX', lease)
        return 0
    else
        -- My place lapsed, and that must not delay the waiter behind me.
        redis.call('SET', lock, holder, 'KEEPTTL')
    end
else
    placed = redis.call('EXISTS', place) == 1
end

local answer = -1
if alive > 0 then
    answer = 1
    if not placed then
        -- I have no place, or it lapsed, possibly with a lock that had been handed to me. The writes that a server may
        -- refuse for lack of memory come first.
        local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
        redis.call('ZADD', queue, (last or 0) + 1, me)
        redis.call('RPUSH', place, 1)
        answer = 2
    end
    redis.call('PEXPIRE', place, alive)
    -- The queue expires when nobody in it is alive any more.
    if redis.call('PTTL', queue) < alive then
        redis.call('PEXPIRE', queue, alive)
    end
end
if held then
    return answer
end

-- The lock is free: an earlier holder let it expire. It goes to the first waiter that is alive, whichever client asks.
while true do
    local next = redis.call('ZPOPMIN', queue)
    local first = next[1]
    if not first or first == me then
        redis.call('DEL', place)
        redis.call('SET', lock, me, 'PX', lease)
        return 0
    end
    -- See queue_leave.lua.
    local list = KEYS[4] .. ':' .. first
    local refused = redis.pcall('RENAME', KEYS[3] .. ':' .. first, list).err
    if not refused then
        local left = math.max(redis.call('PTTL', list), 1)
        redis.call('SET', lock, first, 'PX', math.min(left, tonumber(lease)))
        return answer
    elseif not string.find(refused, 'no such key', 1, true) then
        redis.call('ZADD', queue, next[2], first)
        return redis.error_reply(refused)
    end
end
