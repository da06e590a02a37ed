"""What every publisher can do; and which one serves a broker."""

from collections.abc import Sequence
from typing import Literal, Protocol

from celery import Celery

from cronq.store.agenda import DueJob


class Publisher(Protocol):
    """Puts messages on a broker. Used by one thread."""

    batch: int
    """How many messages are best sent in one call of `publish`."""

    @property
    def outages(self) -> tuple[type[BaseException], ...]:
        """What a broker that is away raises."""

    def queue_of(self, task: str, queue: str | None) -> str:
        """Return the name of the queue that a job of `task` goes to."""

    def routes(self) -> dict[str, str]:
        """Return the queue of each task that was routed so far, where its jobs name none; by any thread."""

    def render_rest(self, batch: Sequence[DueJob]) -> list[DueJob]:
        """Write messages ahead of their time, into `due.message`; return the jobs that have one now."""

    def take_oversized(self) -> dict[str, str]:
        """Return the jobs left out since the last call for having too many arguments: id → what is wrong."""

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        """Send; return the ids the broker confirmed, or raise `PublishFailed`.

        An id that is neither returned nor raised was refused by the broker: there is no such queue.
        """

    def depth(self, queue: str) -> int:
        """Return how many messages wait in `queue`."""

    def close(self) -> None:
        """Drop the connection; the next call opens a new one."""


def open_publisher(
    app: Celery, *, flower_names: Literal["schedule", "task"], max_payload_bytes: int | None = None
) -> Publisher:
    """Return the publisher for the app's broker."""
    from cronq.delivery.rabbitmq import RabbitMQPublisher  # noqa: PLC0415 - only one of the two is needed
    from cronq.delivery.redis_list import RedisPublisher  # noqa: PLC0415

    transport = app.connection_for_write().transport_cls
    kind = RedisPublisher if transport in ("redis", "rediss", "sentinel") else RabbitMQPublisher
    return kind(app, flower_names=flower_names, max_payload_bytes=max_payload_bytes)
