"""The leader's lock: at most one beat holds it, while it proves that it is alive."""

from enum import IntEnum

import redis

from cronq.coordination.notices import RELEASED, send_notice
from cronq.coordination.redis_client import lua


class Renewal(IntEnum):
    """What a renewal found."""

    LOST = 0  #: another beat holds the lock
    HELD = 1
    REGAINED = 2  #: Redis had lost it; it is held again


class LeaderLock:
    """One shard's lock, as one beat (`holder`) sees it."""

    def __init__(self, client: redis.Redis, *, prefix: str, shard: int, holder: str, lock_s: float) -> None:
        self.key = f"{prefix}leader:{shard}"
        self.holder = holder
        self._client, self._prefix = client, prefix
        self._ttl_ms = int(lock_s * 1000)
        self._take = client.register_script(lua("take_lock"))
        self._renew = client.register_script(lua("renew_lock"))
        self._release = client.register_script(lua("release_lock"))

    def take(self) -> bool:
        """Take the lock if it is free; one that lasts longer than any beat asks for is cut to its time."""
        return bool(self._take(keys=[self.key], args=[self.holder, self._ttl_ms]))

    def renew(self) -> Renewal:
        """Hold the lock for its full time again."""
        return Renewal(self._renew(keys=[self.key], args=[self.holder, self._ttl_ms]))

    def release(self) -> None:
        """Give the lock back, if it is ours."""
        self._release(keys=[self.key], args=[self.holder])

    def tell_free(self) -> None:
        """Let the standbys look at the lock now."""
        send_notice(self._client, self._prefix, RELEASED)


def lock_holder(client: redis.Redis, *, prefix: str, shard: int) -> str | None:
    """Return who holds the lock now, or None."""
    holder = client.get(f"{prefix}leader:{shard}")
    return None if holder is None else str(holder)
