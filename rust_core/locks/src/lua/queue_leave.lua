-- Leaves the queue, and when the lock is mine, hands it to the first in the queue who is alive and rings his bell. Most
-- of what others wait for is this script, so it makes as few calls as it can.
-- KEYS: the lock; the queue, a sorted set by order of arrival; what places are called; what bells are called.
-- ARGV: my token; for how many ms a lock lasts that is handed over; 1 when I may be blocked at my own bell.
-- 1: the lock was mine. 0: it was not, or no longer.
local lock, me = KEYS[1], ARGV[1]

if ARGV[3] == '1' then
    -- Whoever is blocked is woken at once, by a number that hands nothing over; a bell that nobody hears must not stay.
    redis.call('RPUSH', KEYS[4] .. ':' .. me, 0)
    redis.call('PEXPIRE', KEYS[4] .. ':' .. me, 1000)
end
if redis.call('GET', lock) ~= me then
    redis.call('ZREM', KEYS[2], me)
    redis.call('DEL', KEYS[3] .. ':' .. me)
    return 0
end

-- Whoever holds the lock has left the queue already.
while true do
    local first = redis.call('ZPOPMIN', KEYS[2])[1]
    if not first then
        redis.call('DEL', lock)
        return 1
    end
    -- His place is a bell that has not rung, with his deadline for its end: it takes one call to see that he is alive, to
    -- ring, and to see to it that the bell does not stay if he died. An error says that the place is over.
    if not redis.pcall('RENAME', KEYS[3] .. ':' .. first, KEYS[4] .. ':' .. first).err then
        -- His at once, so that nobody overtakes him. He begins the whole lease himself, when he has heard it.
        redis.call('SET', lock, first, 'PX', ARGV[2])
        return 1
    end
end
