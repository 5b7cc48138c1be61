-- Deletes those of KEYS that still hold ARGV[1], my token. 1: all did; 0: some were gone, or another client's.
local deleted = 0
for _, key in ipairs(KEYS) do
    -- pcall: a key that another program turned into a list must not stop the release of the others.
    if redis.pcall('GET', key) == ARGV[1] then
        deleted = deleted + redis.call('DEL', key)
    end
end
return deleted == #KEYS and 1 or 0
