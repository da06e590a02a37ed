"""Publishes onto RabbitMQ: persistent, mandatory, pipelined, and each message confirmed by the broker."""

import time
from collections.abc import Sequence
from typing import Any

from cronq.delivery.connection import BrokerConnection
from cronq.delivery.publisher import PublishFailed
from cronq.store.agenda import DueJob

CONFIRM_TIMEOUT_S = 10.0
WINDOW = 1000
"""Unconfirmed messages at which the sender waits for half of them: the broker never runs dry."""


class RabbitMQPublisher(BrokerConnection):
    """Sends a window of messages, then waits once for all their confirms."""

    batch = 5000

    _next_tag = 1

    def on_open(self) -> None:
        """Ask for confirms; delivery tags count from 1 on every channel."""
        channel = self._channel
        channel.confirm_select()
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)
        # Without this, py-amqp polls the socket before every single publish for a "blocked" notice. A
        # blocked broker does not confirm either, so the confirm's deadline finds out.
        self._connection.connection.client_properties["capabilities"]["connection.blocked"] = False
        self._next_tag = 1
        self._outstanding: dict[int, str] = {}
        self._refused: set[str] = set()

    def render(self, due: DueJob) -> None:
        """Write the message now, so that at the due time only bytes have to move."""
        message = self._builder.build(due)
        channel = self.channel()
        self.declare(message.queue)
        message.properties["frame"] = channel.prepare_message(
            message.payload,
            message.properties.pop("priority", None),
            "application/json",
            "utf-8",
            message.headers,
            dict(message.properties),
        )
        due.message = message

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        """Send all, then wait for the broker's word on each."""
        try:
            batch = self.render_rest(batch)
            channel = self.channel()
            self._refused.clear()
            for due in batch:
                message = due.message
                channel.basic_publish(
                    message.properties["frame"], message.exchange, message.routing_key, mandatory=True
                )
                self._outstanding[self._next_tag] = due.id
                self._next_tag += 1
                if len(self._outstanding) >= WINDOW:
                    self._await_confirms(WINDOW // 2)
            self._await_confirms(0)
            confirmed = [due for due in batch if due.id not in self._refused]
            self.tell(confirmed)
        except Exception as error:
            # Which of them arrived is unknown, so all go again; a worker refuses the second copy.
            self.close()
            raise PublishFailed(error) from error
        return [due.id for due in confirmed]

    def _await_confirms(self, remaining: int) -> None:
        deadline = time.monotonic() + CONFIRM_TIMEOUT_S
        while len(self._outstanding) > remaining:
            self._connection.drain_events(timeout=max(0.001, deadline - time.monotonic()))

    def _on_ack(self, tag: int, multiple: bool) -> None:
        for acked in [t for t in self._outstanding if t <= tag] if multiple else [tag]:
            self._outstanding.pop(acked, None)

    def _on_nack(self, tag: int, multiple: bool) -> None:
        for refused in [t for t in self._outstanding if t <= tag] if multiple else [tag]:
            self._refused.add(self._outstanding.pop(refused, ""))

    def _on_return(self, exception: Any, _exchange: str, _routing_key: str, message: Any) -> None:  # noqa: ANN401
        del exception
        self._refused.add(message.properties.get("correlation_id", ""))
        # Somebody deleted the queue: it is declared again with the next message.
        self._declared.clear()
