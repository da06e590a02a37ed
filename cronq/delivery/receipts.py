"""Spares Redis the note of what a worker took off a queue, where SQL knows it anyway.

What is popped off a list is nowhere else, so kombu writes every message that a worker takes into a hash, and
deletes it there when it is acknowledged: two transactions, half of what a message costs a worker's parent. A
job of cronq needs no such note: its row says that its message went out and that nobody claimed it, and the
leader sends it again. A worker that shuts down puts back what it has not begun. Other messages are noted as
always. See docs/decisions/0011-no-receipts-on-redis.md.
"""

from typing import Any

from kombu.transport import redis as transport
from kombu.transport import virtual

from cronq.delivery.message import HEADER


def spare_receipts() -> None:
    """Let the Redis transport of this process note no job of cronq."""
    transport.Channel.QoS = Receipts


class Receipts(transport.QoS):  # type: ignore[misc]
    """The messages that a consumer has: those of cronq's jobs are in this process's memory only."""

    def append(self, message: Any, delivery_tag: str) -> None:  # noqa: ANN401 - kombu's Message
        """Take a message in; note it in Redis unless it is a job's."""
        if _is_job(message):
            virtual.QoS.append(self, message, delivery_tag)
        else:
            super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Forget a message."""
        if _is_job(self._delivered.get(delivery_tag)):
            virtual.QoS.ack(self, delivery_tag)
        else:
            super().ack(delivery_tag)

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:  # noqa: ANN401
        """Put a message back into its queue."""
        message = self._delivered.get(tag)
        if not _is_job(message):
            super().restore_by_tag(tag, client, leftmost)
        elif tag not in self._dirty:
            origin = message.delivery_info
            with self.channel.conn_or_acquire(client) as open_client:
                self.channel._do_restore_message(  # noqa: SLF001 - as kombu's own method does
                    message._raw, origin["exchange"], origin["routing_key"], open_client, leftmost  # noqa: SLF001
                )  # fmt: skip

    def restore_unacked(self, client: Any = None) -> None:  # noqa: ANN401
        """Put every message back; none when the connection is given up, which has nobody to tell.

        Celery gives a broken connection up before it closes its channels. kombu would look for an address
        then that is gone, and the worker would end by an `AttributeError`.
        """
        if client is None and self.channel.connection.client is None:
            self._delivered.clear()
        else:
            super().restore_unacked(client)


def _is_job(message: Any) -> bool:  # noqa: ANN401
    return message is not None and message.headers.get(HEADER) is not None
