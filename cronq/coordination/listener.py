"""Listens to a channel of Redis, for as long as the process lives."""

import threading
from collections.abc import Callable
from typing import Final

import redis

from cronq.coordination.redis_client import RedisError

RETRY_S: Final = 1.0


class Listener:
    """Calls `receive` with each message's text, in a thread of its own, reconnecting for ever.

    opened: called each time it listens anew; what was sent while Redis was away is lost.
    """

    def __init__(
        self,
        client: redis.Redis,
        channel: str,
        receive: Callable[[str], None],
        *,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._channel, self._receive, self._opened = client, channel, receive, opened
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"cronq-{channel}", daemon=True)

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
                    self._opened()
                    while not self._stopping.is_set():
                        message = subscription.get_message(timeout=0.5)
                        if message is not None and message["type"] == "message":
                            self._receive(message["data"])
            except (RedisError, OSError, UnicodeDecodeError):
                self._stopping.wait(RETRY_S)
