-- Sets the lease of KEYS[1] anew, to ARGV[2] ms, only when it still holds ARGV[1], my token. 1: set; 0: gone, or
-- another's.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
