-- Takes KEYS[1] for ARGV[1], my token, for ARGV[2] ms if it is free.
-- 0: taken. A positive number: another client holds it for that many ms. -1: another client holds it, without an
-- expiry.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return 0
end
local left = redis.call('PTTL', KEYS[1])
-- A lock in its last millisecond: its remaining 0 ms must not look like a grant.
if left == 0 then
    return 1
end
return left
