"""The queue as an outsider sees it: how long it is, and what arrives in it when."""

import base64
import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import amqp
import redis


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message, and when it was seen: at most one look of the observer after it arrived."""

    seen_at: float
    raw: Any

    def read(self) -> tuple[dict[str, Any], list[Any]]:
        """Return the message's headers and the task's arguments."""
        if isinstance(self.raw, amqp.Message):
            return self.raw.headers, json.loads(self.raw.body)[0]
        envelope = json.loads(self.raw)
        return envelope["headers"], json.loads(base64.b64decode(envelope["body"]))[0]


class Queue(Protocol):
    """One queue; `step_s` is how long to wait between two looks at it."""

    step_s: float

    def length(self) -> int:
        """Return how many messages are in it."""

    def drain(self) -> list[Arrival]:
        """Take out what is there."""

    def close(self) -> None:
        """Stop looking."""


TAKE: Final = """
if redis.call("EXISTS", KEYS[1]) == 0 then return false end
redis.call("RENAME", KEYS[1], KEYS[2])
return redis.call("TIME")
"""


class RedisQueue:
    """A list of Redis, the way kombu uses it.

    A look only sets aside what is there, and Redis says when that was: reading a thousand messages takes ten
    milliseconds, and the next would be seen that much later. They are read when a look finds nothing.
    """

    step_s = 0.003

    def __init__(self, url: str, name: str) -> None:
        self._client, self._name = redis.Redis.from_url(url), name
        self._take = self._client.register_script(TAKE)
        self._taken: list[tuple[str, float]] = []
        self._looks = 0

    def length(self) -> int:
        """Return the length of the list."""
        return int(self._client.llen(self._name))

    def drain(self) -> list[Arrival]:
        """Set aside what is there; if that is nothing, return what was set aside before, oldest first."""
        self._looks += 1
        aside = f"{self._name}:seen:{self._looks}"
        if (at := self._take(keys=[self._name, aside])) is None:
            return self._read()
        self._taken.append((aside, int(at[0]) + int(at[1]) / 1e6))
        return []

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _read(self) -> list[Arrival]:
        taken, self._taken = self._taken, []
        found = []
        for aside, seen_at in taken:
            newest_first = self._client.lrange(aside, 0, -1)
            self._client.delete(aside)
            found += [Arrival(seen_at, raw) for raw in reversed(newest_first)]
        return found


class RabbitMQQueue:
    """A queue of RabbitMQ, declared as Celery declares it."""

    step_s = 0.010

    def __init__(self, url: str, name: str) -> None:
        at = urlsplit(url)
        self._name = name
        self._connection = amqp.Connection(
            f"{at.hostname}:{at.port}", at.username, at.password, virtual_host=unquote(at.path[1:])
        )
        self._connection.connect()
        self._channel = self._connection.channel()
        self._channel.queue_declare(name, durable=True, auto_delete=False)
        self._taken: list[Arrival] = []
        self._consuming = False

    def length(self) -> int:
        """Return what a passive declaration answers: the messages that are ready."""
        return int(self._channel.queue_declare(self._name, passive=True).message_count)

    def drain(self) -> list[Arrival]:
        """Take what was pushed here since the last call."""
        if not self._consuming:
            self._consuming = True
            self._channel.basic_consume(self._name, no_ack=True, callback=self._take)
        with contextlib.suppress(TimeoutError):
            while True:
                self._connection.drain_events(timeout=0.001)
        taken, self._taken = self._taken, []
        return taken

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _take(self, message: amqp.Message) -> None:
        self._taken.append(Arrival(time.time(), message))


def open_queue(broker_url: str, name: str) -> Queue:
    """Return the queue `name` of the broker at `broker_url`."""
    kind = RedisQueue if broker_url.startswith("redis") else RabbitMQQueue
    return kind(broker_url, name)


def drained(queue: Queue, until: float) -> Iterator[list[Arrival]]:
    """Take out what arrives until the instant `until`, one look after the other; empty looks too."""
    while time.time() < until:
        yield queue.drain()
        time.sleep(queue.step_s)
