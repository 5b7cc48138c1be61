-- Leaves the queue. If I hold the lock, hands it to the first waiter that is alive, and wakes it. Makes as few calls as
-- possible: others wait for it when the holder knows no successor.
-- KEYS: the lock; the queue, a sorted set by order of arrival; the prefix of places; the prefix of wake-up lists; the
-- prefix of prepared lists, which wake a successor once renamed.
-- ARGV: my token; how many ms a handed-over lock lasts; 1 when I may be blocked in a pop of my own wake-up list.
-- 1: I held the lock. 0: I did not, or no longer.
local lock, me = KEYS[1], ARGV[1]

if ARGV[3] == '1' then
    -- A blocked pop is woken at once by the number 0, which hands nothing over. The list expires, because nobody may
    -- read it.
    redis.call('RPUSH', KEYS[4] .. ':' .. me, 0)
    redis.call('PEXPIRE', KEYS[4] .. ':' .. me, 1000)
end
local held = redis.call('GET', lock) or ''
local holder = string.sub(held, 1, #me)
if holder == me then
    if #held > #me then
        redis.call('DEL', KEYS[5] .. ':' .. me)
    end
else
    -- As a successor that is not woken yet I delete the prepared list; the holder finds that out.
    local given = string.sub(held, #me + 1) == me and redis.call('DEL', KEYS[5] .. ':' .. holder) == 0
    redis.call('ZREM', KEYS[2], me)
    if redis.call('DEL', KEYS[3] .. ':' .. me) == 0 or not given then
        return 0
    end
end

-- The holder of the lock is no longer in the queue.
while true do
    local next = redis.call('ZPOPMIN', KEYS[2])
    local first = next[1]
    if not first then
        redis.call('DEL', lock)
        return 1
    end
    -- The place of the first waiter is a list that expires at its deadline. Renaming the list takes one call to check
    -- that the waiter is alive, to wake it, and to let the list expire if the waiter died. 'No such key' means that the
    -- place has expired.
    local refused = redis.pcall('RENAME', KEYS[3] .. ':' .. first, KEYS[4] .. ':' .. first).err
    if not refused then
        -- The waiter owns the lock at once, so that nobody overtakes it. It starts the whole lease itself when it is
        -- awake.
        redis.call('SET', lock, first, 'PX', ARGV[2])
        return 1
    elseif not string.find(refused, 'no such key', 1, true) then
        -- A server that refuses the command has not said that the waiter is dead: the waiter keeps its place, and the
        -- caller gets the error.
        redis.call('ZADD', KEYS[2], next[2], first)
        return redis.error_reply(refused)
    end
end
