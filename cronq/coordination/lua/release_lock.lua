-- release_lock(KEYS = {lock}, ARGV = {holder}) -> 1 | 0
-- 1: it was ours and is free.  0: it was another's, and stays so.
if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("DEL", KEYS[1])
end
return 0
