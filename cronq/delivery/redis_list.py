"""Publishes onto Redis lists, the way kombu lays them out: one `LPUSH` takes a part of a batch per queue."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from cronq.delivery.connection import BrokerConnection
from cronq.delivery.message import Rendered
from cronq.store.agenda import DueJob

TOP_PRIORITY = 9
PART = 500
"""Messages in one command: Redis serves nobody else for the one or two milliseconds that it takes them."""
AHEAD = 1
"""Commands that may be on their way while the answer to an earlier one is awaited."""


class _Collector:
    """Takes the place of kombu's `PublishBatch`: it keeps the commands, and sends nothing."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, tuple[Any, ...]]] = []

    def add(self, name: str, *args: Any) -> None:  # noqa: ANN401
        self.commands.append((name, args))


class RedisPublisher(BrokerConnection):
    """kombu writes every message, with envelope, priority step and prefix; only sending is batched."""

    batch = 5000

    def on_open(self) -> None:
        """Nothing to prepare."""

    def render(self, due: DueJob) -> None:
        """Let kombu write the message now, so that at the due time only bytes have to move."""
        message = self._builder.build(due)
        channel = self.channel()
        self.declare(message.queue)
        if due.priority is not None:
            # On Redis the smallest number is consumed first; cronq's greatest is, on both brokers.
            message.properties["priority"] = TOP_PRIORITY - due.priority
        prepared = channel.prepare_message(
            message.payload,
            content_type="application/json",
            content_encoding="utf-8",
            headers=message.headers,
            properties=message.properties,
        )
        collector = _Collector()
        channel.basic_publish(
            prepared, exchange=message.exchange, routing_key=message.routing_key, _publish_batch=collector
        )
        # Encoded now: at the due time every microsecond counts a hundred thousand times.
        pushes = [(args[0], _bulk(args[1])) for name, args in collector.commands if name == "lpush"]
        others = [(name, args) for name, args in collector.commands if name != "lpush"]
        due.message = Rendered.of(message, (pushes, others))

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        """Send everything, one part while Redis takes the one before. A failure leaves all unconfirmed."""
        try:
            batch = self.render_rest(batch)
            with self.channel().conn_or_acquire() as client:
                self._push(client, batch)
                self._send_others(client, batch)
            self.tell(list(batch))
        except Exception as error:
            self.close()
            raise self.failed(error) from error
        return [due.id for due in batch]

    def _push(self, client: Any, batch: Sequence[DueJob]) -> None:  # noqa: ANN401
        # redis-py would pack every argument again, and hand the kernel 6 kB at a time.
        connection = client.connection_pool.get_connection()
        unanswered = 0
        try:
            for command in self._commands(batch):
                connection.send_packed_command([command])
                unanswered += 1
                if unanswered > AHEAD:
                    connection.read_response()
                    unanswered -= 1
            for _ in range(unanswered):
                connection.read_response()
        except BaseException:
            # What it would answer next belongs to nobody.
            connection.disconnect()
            raise
        finally:
            client.connection_pool.release(connection)

    def _commands(self, batch: Sequence[DueJob]) -> Iterator[bytes]:
        rest = iter(batch)
        while part := list(islice(rest, PART)):
            lists: dict[str, list[bytes]] = {}
            for due in part:
                for key, payload in due.message.wire[0]:
                    lists.setdefault(key, []).append(payload)
            for key, payloads in lists.items():
                head = b"*%d\r\n%b%b" % (len(payloads) + 2, LPUSH, _bulk(self._prefix + key))
                yield b"".join([head, *payloads])

    @property
    def _prefix(self) -> str:
        return str(self.channel().global_keyprefix or "")

    def _send_others(self, client: Any, batch: Sequence[DueJob]) -> None:  # noqa: ANN401
        others = [command for due in batch for command in due.message.wire[1]]
        if others:
            with client.pipeline(transaction=False) as pipeline:
                for name, args in others:
                    getattr(pipeline, name)(*args)
                pipeline.execute()


def _bulk(text: str) -> bytes:
    """Return `text` as an argument of a command in Redis's protocol."""
    data = text.encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)


LPUSH = _bulk("LPUSH")
