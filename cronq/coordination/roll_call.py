"""Which processes are alive: beats with who leads and how far their wall clocks are off, and workers."""

import contextlib
import json
from typing import Any

import redis

from cronq.coordination.redis_client import RedisError

SILENT_AFTER_S = 10


class RollCall:
    """Each process of one kind writes down that it is there; the note vanishes when it stops doing so."""

    def __init__(self, client: redis.Redis, *, prefix: str, kind: str) -> None:
        self._client, self._prefix = client, f"{prefix}{kind}:"

    def tell(self, holder: str, **facts: Any) -> None:  # noqa: ANN401
        """Note that `holder` is alive. Without Redis nothing is noted."""
        with contextlib.suppress(RedisError):
            self._client.set(
                self._prefix + holder, json.dumps({"holder": holder, **facts}), ex=SILENT_AFTER_S
            )

    def read(self) -> list[dict[str, Any]]:
        """Return those that are alive, a leader first."""
        keys = list(self._client.scan_iter(self._prefix + "*", count=100))
        values = self._client.mget(keys) if keys else []
        found = [json.loads(value) for value in values if value is not None]
        return sorted(found, key=lambda note: (not note.get("leads", False), note["holder"]))
