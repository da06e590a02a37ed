"""The dead-letter queue on the broker: a copy of each dead letter, for whoever watches queues.

On RabbitMQ a durable queue behind an exchange of the same name; on Redis the list that kombu makes of such a
queue. SQL has the record: the queue may be lost, purged or consumed without harm.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from celery import Celery
from kombu import Exchange, Producer, Queue
from kombu.common import maybe_declare

from cronq.delivery.connection import ANSWER_TIMEOUT_S, connect, outages_of
from cronq.delivery.message import MessageBuilder
from cronq.store.agenda import DueJob

FACTS: Final = "cronq_dead"
"""The header that says which dead letter it is, and why."""
KEPT: Final = 10_000
"""Copies that stay; the oldest beyond them are dropped."""
CHUNK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message as it was, with what has to be said of it."""

    id: str
    body: bytes | str
    content_type: str | None
    content_encoding: str | None
    headers: Mapping[str, Any]
    priority: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Unroutable(Exception):
    """There is no queue any more where the message came from."""


class DeadLetterQueue:
    """Opens its own connection when it is needed, and drops it when it fails. Used by one thread."""

    def __init__(self, app: Celery, name: str) -> None:
        self._app = app
        self._connection: Any = None
        self._channel: Any = None
        self._producer: Any = None
        self._returned: list[object] = []
        self._builder = MessageBuilder(app, flower_names="schedule")
        self.queue = Queue(
            name,
            Exchange(name, type="direct", durable=True),
            routing_key=name,
            durable=True,
            queue_arguments={
                "x-max-length": KEPT,
                "x-overflow": "drop-head",
                # A quorum queue counts how often a message was looked at, and drops it in the end.
                "x-queue-type": "classic",
            },
        )

    def letter_of(self, job: DueJob, facts: Mapping[str, Any]) -> Letter:
        """Return a job's message as it was published."""
        message = self._builder.write(job)
        return Letter(
            id=job.id,
            body=self._builder.payload(message.body),
            content_type="application/json",
            content_encoding="utf-8",
            headers=message.headers,
            priority=job.priority,
            facts=facts,
        )

    def put(self, letter: Letter) -> None:
        """Add a copy; it is on the broker's disk, as far as it has one, when this returns."""
        self._open()
        maybe_declare(self.queue, self._channel)
        self._send(letter, self.queue.name, self.queue.name, {FACTS: {**letter.facts, "id": letter.id}})
        if self._on_redis:
            self._channel.client.ltrim(self._key, 0, KEPT - 1)

    def send_back(self, letter: Letter, exchange: str, routing_key: str) -> None:
        """Publish a message again as it was; raise `Unroutable`."""
        self._open()
        if not self._send(letter, exchange, routing_key, {}):
            raise Unroutable(
                f"no queue takes messages for exchange {exchange!r}, routing key {routing_key!r}"
            )

    def remove(self, ids: Sequence[str]) -> set[str]:
        """Take the copies of the letters `ids` off the queue, and return which were there.

        The others keep their places. On RabbitMQ one that a consumer holds at this moment is not there.
        """
        if not ids:
            return set()
        self._open()
        return self._remove_from_list(set(ids)) if self._on_redis else self._remove_by_consuming(set(ids))

    @property
    def outages(self) -> tuple[type[BaseException], ...]:
        """What a broker that is away raises."""
        return outages_of(self._app)

    def close(self) -> None:
        """Drop the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.collect()

    @property
    def _on_redis(self) -> bool:
        return bool(self._connection.transport.driver_type == "redis")

    @property
    def _key(self) -> str:
        # kombu's client puts the prefix before the keys of some commands only; LRANGE is none of them.
        return f"{self._channel.global_keyprefix or ''}{self.queue.name}"

    def _open(self) -> None:
        if self._connection is None:
            connection = connect(self._app, confirm_publish=True)
            self._channel = connection.channel()
            self._connection = connection
            note_return = None if self._on_redis else lambda *what: self._returned.append(what)
            self._producer = Producer(self._channel, on_return=note_return)

    def _send(self, letter: Letter, exchange: str, routing_key: str, headers: Mapping[str, Any]) -> bool:
        self._returned.clear()
        priority = {} if letter.priority is None else {"priority": letter.priority}
        self._producer.publish(
            letter.body,
            exchange=exchange,
            routing_key=routing_key,
            content_type=letter.content_type or "application/octet-stream",
            content_encoding=letter.content_encoding or "binary",
            headers={**letter.headers, **headers},
            delivery_mode=2,
            mandatory=True,
            timeout=ANSWER_TIMEOUT_S,
            **priority,
        )
        return not self._returned

    def _remove_from_list(self, wanted: set[str]) -> set[str]:
        found: dict[str, bytes] = {}
        client, start = self._channel.client, 0
        while texts := client.lrange(self._key, start, start + CHUNK - 1):
            for text in texts:
                dead_id = _id_of(json.loads(text).get("headers"))
                if dead_id in wanted:
                    found[dead_id] = text
            start += CHUNK
        for text in found.values():
            client.lrem(self._key, 0, text)
        return set(found)

    def _remove_by_consuming(self, wanted: set[str]) -> set[str]:
        found: set[str] = set()
        # A channel of its own: closing it puts back what was looked at, where it was.
        with self._connection.channel() as channel:
            bound = self.queue.bind(channel)
            bound.declare()
            while (message := bound.get(no_ack=False)) is not None:
                dead_id = _id_of(message.headers)
                if dead_id in wanted:
                    message.ack()
                    found.add(dead_id)
        return found


def _id_of(headers: Any) -> str:  # noqa: ANN401 - anybody may put something into a queue
    facts = headers.get(FACTS) if isinstance(headers, Mapping) else None
    return str(facts.get("id", "")) if isinstance(facts, Mapping) else ""
