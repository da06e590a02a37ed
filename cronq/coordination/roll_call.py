"""Which processes are alive: beats with who leads and how far their wall clocks are off, and workers."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import redis

from cronq.coordination.redis_client import RedisError

SILENT_AFTER_S = 10


class RollCall:
    """Each process of one kind writes down that it is there; the note vanishes when it stops doing so."""

    def __init__(self, client: redis.Redis, *, prefix: str, kind: str) -> None:
        self._client, self._prefix, self._names = client, f"{prefix}{kind}:", f"{prefix}{kind}s"

    def tell(self, holder: str, **facts: Any) -> None:  # noqa: ANN401
        """Note that `holder` is alive. Without Redis nothing is noted."""
        with contextlib.suppress(RedisError):
            note = json.dumps({"holder": holder, **facts})
            with self._client.pipeline(transaction=False) as pipeline:
                pipeline.set(self._prefix + holder, note, ex=SILENT_AFTER_S)
                pipeline.sadd(self._names, holder)
                pipeline.execute()

    def read(self) -> list[dict[str, Any]]:
        """Return those that are alive, a leader first."""
        names: list[str] = list(self._client.smembers(self._names))  # type: ignore[arg-type]
        notes = self._client.mget([self._prefix + name for name in names]) if names else []
        found = [json.loads(note) for note in notes if note is not None]
        if gone := [name for name, note in zip(names, notes, strict=True) if note is None]:
            self._client.srem(self._names, *gone)
        return sorted(found, key=lambda note: (not note.get("leads", False), note["holder"]))


def slots_by_queue(notes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many jobs at a time the workers that wrote `notes` do of each queue."""
    slots: Counter[str] = Counter()
    for note in notes:
        for queue in note.get("queues", ()):
            slots[queue] += int(note.get("slots", 1))
    return dict(slots)
