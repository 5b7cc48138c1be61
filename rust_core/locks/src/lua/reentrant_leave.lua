-- Leaves ARGV[2] entries of KEYS[1], only while ARGV[1], my token, owns it, and deletes it with the last one.
-- The number of entries left, 0: deleted; nil when it is gone, or another's.
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
    return nil
end
-- Counted here first: a server without memory refuses HINCRBY, and would keep the lock for the rest of its lease.
if redis.call('HGET', KEYS[1], 'entries') - ARGV[2] <= 0 then
    redis.call('DEL', KEYS[1])
    return 0
end
return redis.call('HINCRBY', KEYS[1], 'entries', -ARGV[2])
