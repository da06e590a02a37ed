"""Follows live progress as it is reported; what is sent while Redis is away is lost, being only a picture."""

import threading
from collections.abc import Callable

import redis

RETRY_S = 1.0


class ProgressFollower:
    """Calls `receive` with each report's JSON text, in a thread of its own, reconnecting for ever."""

    def __init__(self, client: redis.Redis, prefix: str, receive: Callable[[str], None]) -> None:
        self._client, self._channel, self._receive = client, f"{prefix}progress", receive
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cronq-progress", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the thread ends within a second by itself."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._client.pubsub(ignore_subscribe_messages=True) as subscription:
                    subscription.subscribe(self._channel)
                    while not self._stopping.is_set():
                        message = subscription.get_message(timeout=0.5)
                        if message is not None and message["type"] == "message":
                            self._receive(message["data"])
            except (redis.RedisError, OSError):
                self._stopping.wait(RETRY_S)
