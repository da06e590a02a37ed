"""Change notices: wake the leader at once, or the next one. A lost notice costs a second, never a job."""

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any, Final

import redis

from cronq.coordination.redis_client import RedisError

RELEASED: Final = "released"
"""The kind of notice that says: the leader gave its lock back."""


def send_notice(client: redis.Redis, prefix: str, kind: str, **facts: str) -> None:
    """Tell whoever leads that something changed; if Redis is away, its next look finds it."""
    with contextlib.suppress(RedisError):
        client.publish(f"{prefix}notices", json.dumps({"kind": kind, **facts}))


class NoticeListener:
    """Calls `receive` in a thread of its own for every notice, reconnecting for ever."""

    def __init__(
        self,
        client: redis.Redis,
        prefix: str,
        receive: Callable[[dict[str, Any]], None],
        *,
        retry_s: float = 1.0,
    ) -> None:
        self._client, self._channel, self._receive = client, f"{prefix}notices", receive
        self._retry_s = retry_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cronq-notices", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; the thread ends within a second by itself."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._client.pubsub(ignore_subscribe_messages=True) as subscription:
                    subscription.subscribe(self._channel)
                    # Something may have been sent while nobody listened.
                    self._receive({"kind": "listening"})
                    while not self._stopping.is_set():
                        message = subscription.get_message(timeout=0.5)
                        if message is not None and message["type"] == "message":
                            self._receive(json.loads(message["data"]))
            except (RedisError, OSError, ValueError):
                self._stopping.wait(self._retry_s)
