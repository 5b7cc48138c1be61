-- Deletes of KEYS what still holds ARGV[1], my token. 1: all did; 0: some were gone, or another's.
local deleted = 0
for _, key in ipairs(KEYS) do
    -- pcall: one key that somebody made a list of must not keep the others.
    if redis.pcall('GET', key) == ARGV[1] then
        deleted = deleted + redis.call('DEL', key)
    end
end
return deleted == #KEYS and 1 or 0
