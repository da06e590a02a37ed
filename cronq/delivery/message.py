"""The message: a Celery task message (protocol 2) whose id is the job's id."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from celery import Celery, signals
from kombu import Queue
from kombu.serialization import dumps

from cronq.delivery.failure import Oversized
from cronq.job import Trigger
from cronq.schedule import Overlap
from cronq.store.agenda import DueJob
from cronq.telemetry.masking import without_secrets

HEADER: Final = "cronq"
VERSION: Final = 1
EXPANSION_S: Final = 86_400
"""Seconds that finding the items of a fan-out may take."""
EMBED_BYTES: Final = 256
"""What a body may have beyond the arguments."""


@dataclass(slots=True)
class Message:
    """One message, ready to be put on a broker."""

    job_id: str
    task: str
    body: Any  #: what Celery's signals show: (args, kwargs, embed)
    payload: str  #: the body as JSON
    headers: dict[str, Any]
    properties: dict[str, Any]
    exchange: str
    routing_key: str
    queue: Queue
    sent_event: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """What waits in memory for the due time: a hundred thousand of these may.

    told: the message, if somebody listens to what is published; None: nobody does.
    """

    wire: Any  #: what the transport sends
    told: Message | None

    @classmethod
    def of(cls, message: Message, wire: Any) -> "Rendered":  # noqa: ANN401
        """Keep of `message` what will be needed."""
        return cls(wire, message if message.sent_event is not None or _listened_to() else None)

    @property
    def tells_enough(self) -> bool:
        """Whether those who listen now can be told: somebody may have begun to since."""
        return self.told is not None or not _listened_to()


def _listened_to() -> bool:
    return bool(signals.after_task_publish.receivers)


class MessageBuilder:
    """Builds messages the way `app.send_task` would, without sending them."""

    def __init__(
        self,
        app: Celery,
        *,
        flower_names: Literal["schedule", "task"],
        max_payload_bytes: int | None = None,
    ) -> None:
        self._app = app
        self._flower_names = flower_names
        self._max_payload_bytes = max_payload_bytes
        self._routes: dict[tuple[str, str | None], tuple[Queue, str, str]] = {}

    def build(self, due: DueJob) -> Message:
        """Return the message of `due`. Listeners of `before_task_publish` may add headers to it."""
        queue, exchange, routing_key = self.route(due.task, due.queue)
        message = self.write(due)
        properties = dict(message.properties, delivery_mode=2)
        if due.priority is not None:
            properties["priority"] = due.priority
        if signals.before_task_publish.receivers:
            signals.before_task_publish.send(
                sender=due.task,
                body=message.body,
                exchange=exchange,
                routing_key=routing_key,
                headers=message.headers,
                properties=properties,
                declare=[queue],
                retry_policy={},
            )
        payload = self.payload(message.body)
        return Message(
            job_id=due.id,
            task=due.task,
            body=message.body,
            payload=payload,
            headers=message.headers,
            properties=properties,
            exchange=exchange,
            routing_key=routing_key,
            queue=queue,
            sent_event=message.sent_event,
        )

    def write(self, due: DueJob) -> Any:  # noqa: ANN401 - Celery's `task_message`
        """Return what Celery would send, with cronq's headers; nobody is told of it."""
        shadow = due.schedule_name if self._flower_names == "schedule" else None
        fire_time = None if due.fire_time is None else iso(due.fire_time)
        message = self._app.amqp.create_task_message(
            due.id,
            due.task,
            tuple(due.args),
            due.kwargs,
            shadow=shadow,
            argsrepr=_shown_args(due, fire_time),
            kwargsrepr=_shown_kwargs(due),
            create_sent_event=bool(self._app.conf.task_send_sent_event),
            # The limits of the task are for its work, not for finding what there is to do.
            **({"time_limit": EXPANSION_S, "soft_time_limit": EXPANSION_S} if due.expands else {}),
        )
        message.headers[HEADER] = _facts(due, fire_time)
        if due.schedule_name is not None:
            # What Celery and django-celery-beat set, so that Sentry and others see a scheduled task.
            message.headers.update(celery_beat_task=True, periodic_task_name=due.schedule_name)
        return message

    def payload(self, body: Any) -> str:  # noqa: ANN401
        """Return the body as JSON; raise `Oversized`."""
        _type, _encoding, payload = dumps(body, serializer="json")
        limit = self._max_payload_bytes
        if limit is not None and len(payload) > limit + EMBED_BYTES:
            raise Oversized(len(payload), limit)
        return str(payload)

    def route(self, task: str, queue_name: str | None) -> tuple[Queue, str, str]:
        """Return the queue, exchange and routing key of a job, as Celery's router decides."""
        key = (task, queue_name)
        if key not in self._routes:
            options = {} if queue_name is None else {"queue": queue_name}
            route = self._app.amqp.router.route(options, task, (), {})
            queue = route.get("queue") or self._app.amqp.default_queue
            if queue.exchange is None or queue.exchange.type == "direct":
                self._routes[key] = queue, "", queue.name
            else:
                routing_key = route.get("routing_key") or queue.routing_key
                self._routes[key] = queue, queue.exchange.name, routing_key
        return self._routes[key]

    def routes(self) -> dict[str, str]:
        """Return the queue of each task that was routed so far, where its jobs name none."""
        routed = list(self._routes.items())  # in one go: another thread may add to it
        return {task: str(queue.name) for (task, named), (queue, *_rest) in routed if named is None}


def routed_queue(app: Celery, task: str) -> str:
    """Return the name of the queue that the app's own routing gives `task`."""
    route = app.amqp.router.route({}, task, (), {})
    return str((route.get("queue") or app.amqp.default_queue).name)


def announce(message: Message) -> None:
    """Tell those who listen to `after_task_publish` that the broker has `message`."""
    signals.after_task_publish.send(
        sender=message.task,
        body=message.body,
        headers=message.headers,
        exchange=message.exchange,
        routing_key=message.routing_key,
    )


def iso(moment: datetime) -> str:
    """Return `moment` in UTC as RFC 3339, with as many decimals as it has."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _facts(due: DueJob, fire_time: str | None) -> dict[str, Any]:
    return {
        "v": VERSION,
        "schedule": due.schedule_name,
        "schedule_id": due.schedule_id,
        "fire_time": fire_time,
        "trigger": due.trigger.value,
        "tenant": due.tenant,
        # What the leader waits for: so that a waiting fire time, a fixed delay or a backfill goes on.
        "notify": due.awaited
        or due.overlap not in (Overlap.ALLOW, Overlap.SKIP)
        or due.trigger is Trigger.BACKFILL,
        "expand": due.expands,
    }


def _shown_args(due: DueJob, fire_time: str | None) -> str:
    args = ", ".join(map(repr, without_secrets(due.args)))
    shown = f"({args})" if fire_time is None else f"{fire_time} ({args})"
    return shown[:1024]


def _shown_kwargs(due: DueJob) -> str:
    kwargs = repr(without_secrets(due.kwargs))
    return (kwargs if due.tenant is None else f"tenant={due.tenant} {kwargs}")[:1024]
