-- Takes all of KEYS for ARGV[1], my token, for ARGV[2] ms, or none of them. 1: taken; 0: another client holds one.
for taken, key in ipairs(KEYS) do
    if not redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) then
        for mine = 1, taken - 1 do
            redis.call('DEL', KEYS[mine])
        end
        return 0
    end
end
return 1
