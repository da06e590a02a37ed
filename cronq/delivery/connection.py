"""One connection to the broker for publishing, opened when needed and dropped when it fails."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from celery import Celery
from kombu import Queue
from kombu.exceptions import OperationalError

from cronq.delivery.failure import Oversized, PublishFailed
from cronq.delivery.message import MessageBuilder, announce
from cronq.settings import hide_password
from cronq.store.agenda import DueJob
from cronq.telemetry.log import get_logger

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 5.0

log = get_logger(__name__)


def connect(app: Celery, **options: Any) -> Any:  # noqa: ANN401 - kombu has no types
    """Open a connection for publishing, and give up soon; `options` are the transport's."""
    connection = app.connection_for_write(
        connect_timeout=CONNECT_TIMEOUT_S,
        transport_options={
            # kombu's default waits for ever in a half-open socket.
            "socket_timeout": ANSWER_TIMEOUT_S,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            **app.conf.broker_transport_options,
            **options,
        },
    )
    connection.ensure_connection(max_retries=0)
    return connection


def outages_of(app: Celery) -> tuple[type[BaseException], ...]:
    """Return what the app's broker raises when it is away."""
    connection = app.connection_for_write()
    errors = (
        OperationalError,
        *connection.recoverable_connection_errors,
        *connection.recoverable_channel_errors,
        OSError,
    )
    # kombu's Redis transport counts KeyError among them; to us it is a job whose queue does not exist.
    return tuple(error for error in errors if error is not KeyError)


class BrokerConnection(ABC):
    """What both publishers share: the connection, declared queues, and the events that others listen to."""

    def __init__(
        self,
        app: Celery,
        *,
        flower_names: Literal["schedule", "task"],
        max_payload_bytes: int | None = None,
    ) -> None:
        self._app = app
        self._builder = MessageBuilder(app, flower_names=flower_names, max_payload_bytes=max_payload_bytes)
        self._oversized: dict[str, str] = {}
        self._connection: Any = None
        self._channel: Any = None
        self._declared: set[str] = set()

    def channel(self) -> Any:  # noqa: ANN401 - kombu has no types
        """Return the open channel; raises whatever the transport raises when the broker is away."""
        if self._channel is None:
            connection = connect(self._app)  # whoever asked tries again, and goes on meanwhile
            self._connection, self._channel = connection, connection.channel()
            self._declared.clear()
            self.on_open()
        return self._channel

    def render_rest(self, batch: Sequence[DueJob]) -> list[DueJob]:
        """Write the messages that are still missing; return the jobs that have one.

        A job whose message cannot be written must not hold the others up: it is said so, and left out.
        """
        good = []
        for due in batch:
            try:
                if not self.is_rendered(due):
                    self.render(due)
            except self.outages:
                raise
            except Oversized as error:
                self._oversized[due.id] = str(error)
                continue
            except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this one
                log.error(  # noqa: TRY400 - the sentence says it
                    "message.not_written",
                    job=due.id,
                    schedule=due.schedule_name,
                    task=due.task,
                    queue=due.queue,
                    error=f"{type(error).__name__}: {error}",
                    consequence="the others go out; correct its queue, priority or arguments",
                )
                continue
            good.append(due)
        return good

    def take_oversized(self) -> dict[str, str]:
        """Return the jobs left out since the last call for having too many arguments: id → what is wrong."""
        oversized, self._oversized = self._oversized, {}
        return oversized

    def is_rendered(self, due: DueJob) -> bool:
        """Tell whether the message of `due` is written and still fits the connection."""
        return due.message is not None and due.message.tells_enough

    @abstractmethod
    def render(self, due: DueJob) -> None:
        """Write the message of `due`, into `due.message`."""

    @abstractmethod
    def on_open(self) -> None:
        """Prepare a new channel."""

    def declare(self, queue: Queue) -> None:
        """Declare `queue` once a connection, as workers do."""
        if queue.name not in self._declared:
            queue.bind(self.channel()).declare()
            self._declared.add(queue.name)

    @property
    def outages(self) -> tuple[type[BaseException], ...]:
        """What a broker that is away raises."""
        return outages_of(self._app)

    def queue_of(self, task: str, queue: str | None) -> str:
        """Return the name of the queue that a job of `task` goes to."""
        return str(self._builder.route(task, queue)[0].name)

    def routes(self) -> dict[str, str]:
        """Return the queue of each task that was routed so far, where its jobs name none."""
        return self._builder.routes()

    def failed(self, error: BaseException) -> PublishFailed:
        """Return what to raise for `error`: it says which broker."""
        return PublishFailed(
            error, hide_password(str(self._app.conf.broker_write_url or self._app.conf.broker_url))
        )

    def depth(self, queue: str) -> int:
        """Return how many messages wait in `queue`."""
        declared = self._app.amqp.queues[queue].bind(self.channel()).queue_declare()
        return int(declared.message_count)

    def close(self) -> None:
        """Drop the connection; the next call opens a new one."""
        connection, self._connection, self._channel = self._connection, None, None
        self._declared.clear()
        if connection is not None:
            connection.collect()

    def tell(self, sent: list[DueJob]) -> None:
        """Let Celery's listeners know what was published; nobody listening, nothing paid."""
        told = [due.message.told for due in sent if due.message.told is not None]
        for message in told:
            announce(message)
        events = [message for message in told if message.sent_event is not None]
        if events:
            with self._app.events.Dispatcher(
                self._connection, buffer_group={"task"}, buffer_limit=500
            ) as dispatcher:
                for message in events:
                    dispatcher.send(
                        "task-sent",
                        **message.sent_event,
                        queue=message.queue.name,
                        exchange=message.exchange,
                        routing_key=message.routing_key,
                    )
                dispatcher.flush()
