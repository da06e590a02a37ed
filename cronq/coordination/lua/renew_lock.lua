-- renew_lock(KEYS = {lock}, ARGV = {holder, ttl_ms}) -> 1 | 2 | 0
-- 1: still ours, and longer.  2: it was gone (Redis was emptied), and is ours again.  0: another's.
local holder = redis.call("GET", KEYS[1])
if holder == ARGV[1] then
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  return 1
end
if not holder then
  redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
  return 2
end
return 0
