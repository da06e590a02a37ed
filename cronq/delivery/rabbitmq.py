"""Publishes onto RabbitMQ: persistent, mandatory, pipelined, and each message confirmed by the broker."""

import time
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Any

from amqp import spec
from amqp.method_framing import frame_writer
from amqp.serialization import dumps

from cronq.delivery.connection import BrokerConnection
from cronq.delivery.message import Rendered
from cronq.store.agenda import DueJob

CONFIRM_TIMEOUT_S = 10.0
WINDOW = 1000
"""Unconfirmed messages at which the sender waits for half of them: the broker never runs dry."""


class _Frames:
    """Takes the place of py-amqp's transport: it keeps the frames' bytes, and sends nothing."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: memoryview) -> None:
        self.written.append(bytes(data))

    def take(self) -> bytes:
        """Return what was written, and forget it."""
        written, self.written = self.written, []
        return b"".join(written)


class RabbitMQPublisher(BrokerConnection):
    """Sends a window of messages in one go, and the next while it waits for the confirms of the last."""

    batch = 5000

    _next_tag = 1

    def on_open(self) -> None:
        """Ask for confirms; delivery tags count from 1 on every channel."""
        channel = self._channel
        channel.confirm_select()
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)
        self._next_tag = 1
        self._outstanding: dict[int, str] = {}
        self._refused: set[str] = set()
        self._frames = _Frames()
        self._write_frames = frame_writer(self._connection.connection, self._frames)

    def is_rendered(self, due: DueJob) -> bool:
        """Tell whether the frames of `due` are written, and for the channel that is open."""
        # Frames are good for the channel that they were written for.
        return super().is_rendered(due) and due.message.wire[0] is self._channel

    def render(self, due: DueJob) -> None:
        """Write the message's frames now, so that at the due time only bytes have to move."""
        message = self._builder.build(due)
        channel = self.channel()
        self.declare(message.queue)
        content = channel.prepare_message(
            message.payload,
            message.properties.pop("priority", None),
            "application/json",
            "utf-8",
            message.headers,
            dict(message.properties),
        )
        publish = dumps("Bssbb", (0, message.exchange, message.routing_key, True, False))  # True: mandatory
        self._write_frames(1, channel.channel_id, spec.Basic.Publish, publish, content)
        due.message = Rendered.of(message, (channel, self._frames.take()))

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        """Send all, then wait for the broker's word on each."""
        try:
            self.channel()  # so that frames written for one that is gone are written anew
            batch = self.render_rest(batch)
            self._refused.clear()
            rest = iter(batch)
            while part := list(islice(rest, WINDOW // 2)):
                self._await_confirms(WINDOW // 2)
                self._outstanding.update(enumerate((due.id for due in part), start=self._next_tag))
                self._next_tag += len(part)
                self._connection.connection.transport.write(b"".join([due.message.wire[1] for due in part]))
            self._await_confirms(0)
            confirmed = [due for due in batch if due.id not in self._refused]
            self.tell(confirmed)
        except Exception as error:
            # Which of them arrived is unknown, so all go again; a worker refuses the second copy.
            self.close()
            raise self.failed(error) from error
        return [due.id for due in confirmed]

    def _await_confirms(self, remaining: int) -> None:
        deadline = time.monotonic() + CONFIRM_TIMEOUT_S
        while len(self._outstanding) > remaining:
            self._connection.drain_events(timeout=max(0.001, deadline - time.monotonic()))

    def _on_ack(self, tag: int, multiple: bool) -> None:
        for acked in self._tags(tag, multiple=multiple):
            self._outstanding.pop(acked, None)

    def _on_nack(self, tag: int, multiple: bool) -> None:
        for refused in self._tags(tag, multiple=multiple):
            self._refused.add(self._outstanding.pop(refused, ""))

    def _tags(self, tag: int, *, multiple: bool) -> list[int]:
        # They were put in by growing tag.
        return list(takewhile(lambda each: each <= tag, self._outstanding)) if multiple else [tag]

    def _on_return(self, exception: Any, _exchange: str, _routing_key: str, message: Any) -> None:  # noqa: ANN401
        del exception
        self._refused.add(message.properties.get("correlation_id", ""))
        # Somebody deleted the queue: it is declared again with the next message.
        self._declared.clear()
