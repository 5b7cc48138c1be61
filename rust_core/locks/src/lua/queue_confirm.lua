-- Begins the whole lease of a lock that was handed to me, once I have heard the ring.
-- KEYS: as in queue_take.lua. ARGV: my token; the lease in ms; 1 when I want an heir.
-- 0: it is mine. A token: mine, and I may give it to him, my heir. -1: it is not mine, or no longer.
local lock, queue, me, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local held = redis.call('GET', lock)
local holder = held and string.sub(held, 1, #me)
if holder == me then
    redis.call('PEXPIRE', lock, lease)
else
    -- Given by name: the holder's bell for me is gone. Or his lease has ended meanwhile, and it is my turn anyway.
    local given = held and string.sub(held, #me + 1) == me and redis.call('EXISTS', KEYS[5] .. ':' .. holder) == 0
    local free = not held and redis.call('ZRANGE', queue, 0, 0)[1] == me
    if not given and not free or redis.call('DEL', KEYS[3] .. ':' .. me) == 0 and free then
        return -1
    end
    redis.call('ZREM', queue, me)
    redis.call('SET', lock, me, 'PX', lease)
end

-- The first in the queue becomes my heir: his token then stands behind mine. A copy of his place lies ready under my name;
-- to rename it to his bell rings that, which is one short command of the server's own in place of a script. It ends with
-- his place and with my lease, so that none but a holder rings, and for nobody who is dead.
local heir = ARGV[3] == '1' and redis.call('ZRANGE', queue, 0, 0)[1]
local bell = KEYS[5] .. ':' .. me
local copied = heir and redis.pcall('COPY', KEYS[3] .. ':' .. heir, bell, 'REPLACE')
-- Servers before Redis 6.2 know no COPY; one that knows it and refuses it is not to be mistaken for them.
if type(copied) == 'table' and copied.err and not string.find(copied.err, 'nknown', 1, true) then
    return copied
end
if copied ~= 1 then
    return 0
end
-- Servers before Redis 7 know of no such end: there I have no heir.
if type(redis.pcall('PEXPIRE', bell, lease, 'LT')) ~= 'number' then
    redis.call('DEL', bell)
    return 0
end
redis.call('SET', lock, me .. heir, 'PX', lease)
return heir
