-- take_lock(KEYS = {lock}, ARGV = {holder, ttl_ms}) -> 1 | 0
-- 1: it was free, and is ours.  0: it is another's.
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
  return 1
end
-- Redis's clock was set back, so that a dead leader's lock would last for as long.
if redis.call("PTTL", KEYS[1]) > tonumber(ARGV[2]) then
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0
