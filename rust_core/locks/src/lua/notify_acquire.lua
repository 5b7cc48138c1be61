-- Takes KEYS[1] for ARGV[1], my token, for ARGV[2] ms when it is free.
-- 0: taken. More: another's, for so many ms yet. -1: another's, and it has no end.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return 0
end
local left = redis.call('PTTL', KEYS[1])
-- A lock in its last millisecond: what is left of it must not look like a grant.
if left == 0 then
    return 1
end
return left
