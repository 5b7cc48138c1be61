-- Renews the lease of KEYS[1] to ARGV[2] ms, only if it still holds ARGV[1], my token. 1: renewed; 0: gone, or another
-- client's.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
