-- Starts the whole lease of a lock that was handed to me, after I was woken.
-- KEYS: as in queue_take.lua. ARGV: my token; the lease in ms; 1 to ask for a successor.
-- 0: I hold it. A token: I hold it, and that client is my successor. -1: I do not hold it, or no longer.
local lock, queue, me, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local held = redis.call('GET', lock)
local holder = held and string.sub(held, 1, #me)
if holder == me then
    redis.call('PEXPIRE', lock, lease)
else
    -- Handed to me as the successor: the list that the holder prepared for me is gone. Or the holder's lease has ended
    -- and it is my turn anyway.
    local given = held and string.sub(held, #me + 1) == me and redis.call('EXISTS', KEYS[5] .. ':' .. holder) == 0
    local free = not held and redis.call('ZRANGE', queue, 0, 0)[1] == me
    if not given and not free or redis.call('DEL', KEYS[3] .. ':' .. me) == 0 and free then
        return -1
    end
    redis.call('ZREM', queue, me)
    redis.call('SET', lock, me, 'PX', lease)
end

-- The first in the queue becomes my successor: its token is stored behind mine. A copy of its place is stored under my
-- name; renaming that copy to its wake-up list wakes it, with one short command in place of a script. The copy ends
-- with the successor's place and with my lease, so that only a holder can wake it, and only while it is alive.
local successor = ARGV[3] == '1' and redis.call('ZRANGE', queue, 0, 0)[1]
local prepared = KEYS[5] .. ':' .. me
local copied = successor and redis.pcall('COPY', KEYS[3] .. ':' .. successor, prepared, 'REPLACE')
-- Servers before Redis 6.2 do not know COPY. A server that knows COPY and refuses it must not be mistaken for them.
if type(copied) == 'table' and copied.err and not string.find(copied.err, 'nknown', 1, true) then
    return copied
end
if copied ~= 1 then
    return 0
end
-- Servers before Redis 7 do not know this condition of PEXPIRE: there I have no successor.
if type(redis.pcall('PEXPIRE', prepared, lease, 'LT')) ~= 'number' then
    redis.call('DEL', prepared)
    return 0
end
redis.call('SET', lock, me .. successor, 'PX', lease)
return successor
