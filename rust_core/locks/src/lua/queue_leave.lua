-- Leaves the queue, and when the lock is mine, hands it to the first in the queue who is alive and rings his bell. It
-- makes as few calls as it can: others wait for it where the holder knows no heir.
-- KEYS: the lock; the queue, a sorted set by order of arrival; what places are called; what bells are called; what the
-- bells of heirs are called until they ring.
-- ARGV: my token; for how many ms a lock lasts that is handed over; 1 when I may be blocked at my own bell.
-- 1: the lock was mine. 0: it was not, or no longer.
local lock, me = KEYS[1], ARGV[1]

if ARGV[3] == '1' then
    -- Whoever is blocked is woken at once, by a number that hands nothing over; a bell that nobody hears must not stay.
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
    -- As an heir who is not rung for yet I take the bell away, and the holder finds that out.
    local given = string.sub(held, #me + 1) == me and redis.call('DEL', KEYS[5] .. ':' .. holder) == 0
    redis.call('ZREM', KEYS[2], me)
    if redis.call('DEL', KEYS[3] .. ':' .. me) == 0 or not given then
        return 0
    end
end

-- Whoever holds the lock has left the queue already.
while true do
    local next = redis.call('ZPOPMIN', KEYS[2])
    local first = next[1]
    if not first then
        redis.call('DEL', lock)
        return 1
    end
    -- His place is a bell that has not rung, with his deadline for its end: it takes one call to see that he is alive, to
    -- ring, and to see to it that the bell does not stay if he died. 'No such key' says that the place is over.
    local refused = redis.pcall('RENAME', KEYS[3] .. ':' .. first, KEYS[4] .. ':' .. first).err
    if not refused then
        -- His at once, so that nobody overtakes him. He begins the whole lease himself, when he has heard it.
        redis.call('SET', lock, first, 'PX', ARGV[2])
        return 1
    elseif not string.find(refused, 'no such key', 1, true) then
        -- A server that refuses the command has not said that he is dead: he keeps his place, and the caller learns it.
        redis.call('ZADD', KEYS[2], next[2], first)
        return redis.error_reply(refused)
    end
end
