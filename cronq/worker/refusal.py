"""Takes what no worker can run out of Celery's hands: the job, or the message itself, becomes a dead letter.

It is written down before the broker may forget it; while the database is away it goes back to its queue.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery, bootsteps
from celery.utils.log import get_logger as get_celery_logger

from cronq.delivery.inspection import Fault, examine
from cronq.delivery.message import HEADER
from cronq.delivery.quarantine import CONTENT_TYPE
from cronq.retry import Kind
from cronq.store.dead_messages import DeadMessage
from cronq.telemetry.log import get_logger
from cronq.worker.desk import StoreDesk

log = get_logger(__name__)
celery_log = get_celery_logger(__name__)


def guard_consumer(
    app: Celery, desk_of_process: Callable[[], StoreDesk], *, max_payload_bytes: int, keep_foreign: bool
) -> None:
    """Look at every message that a worker of `app` gets before Celery does.

    keep_foreign: also write down messages that are no jobs of cronq; else they are only refused.
    """

    class Guard(bootsteps.Step):  # type: ignore[misc]
        """Put between the broker and the consumer when that is built."""

        name = "cronq-guard"

        def __init__(self, consumer: Any, **_options: Any) -> None:  # noqa: ANN401
            refusal = Refusal(
                consumer, desk_of_process, max_payload_bytes=max_payload_bytes, keep_foreign=keep_foreign
            )
            make_handler = consumer.create_task_handler
            consumer.on_decode_error = refusal.undecodable
            consumer.create_task_handler = lambda *args, **kwargs: refusal.around(
                make_handler(*args, **kwargs)
            )

    app.steps["consumer"].add(Guard)


class Refusal:
    """Refuses for one consumer."""

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - Celery's Consumer
        desk_of_process: Callable[[], StoreDesk],
        *,
        max_payload_bytes: int,
        keep_foreign: bool,
    ) -> None:
        self._consumer, self._desk_of_process = consumer, desk_of_process
        self._max_payload_bytes, self._keep_foreign = max_payload_bytes, keep_foreign

    def around(self, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return `handle` for messages that can be run."""
        known, limit = self._consumer.strategies, self._max_payload_bytes

        def received(message: Any) -> None:  # noqa: ANN401 - kombu's Message
            fault = examine(message, known, limit)
            if fault is None:
                handle(message)
            else:
                self.refuse(message, fault)

        return received

    def undecodable(self, message: Any, error: Exception) -> None:  # noqa: ANN401
        """Refuse a message that kombu could not even open."""
        if message.content_type == CONTENT_TYPE:
            message.ack_log_error(celery_log, self._consumer.connection_errors)  # it is kept already
        else:
            self.refuse(message, Fault(Kind.UNDECODABLE, f"{type(error).__name__}: {error}"))

    def refuse(self, message: Any, fault: Fault) -> None:  # noqa: ANN401
        """Write down what it is, then let the broker drop it."""
        if message.content_type == CONTENT_TYPE:
            message.ack_log_error(celery_log, self._consumer.connection_errors)
            return
        headers = message.headers if isinstance(message.headers, Mapping) else {}
        if not self._written_down(message, headers, fault):
            log.warning_once(
                "message.not_refused", why="the database is away", consequence="it goes back to its queue"
            )
            message.requeue()
            return
        if fault.kind is Kind.UNKNOWN_TASK and "id" in headers:
            # So that Flower, result backends and signals hear of it as of any other.
            self._consumer.on_unknown_task(None, message, KeyError(headers["task"]))
        else:
            message.reject_log_error(celery_log, self._consumer.connection_errors)

    def _written_down(self, message: Any, headers: Mapping[str, Any], fault: Fault) -> bool:  # noqa: ANN401
        job_id, error = headers.get("id"), f"{fault.why} (worker {self._consumer.hostname})"
        facts = {"kind": fault.kind, "task": headers.get("task"), "error": fault.why}
        if headers.get(HEADER) is not None and isinstance(job_id, str):
            buried = self._desk_of_process().bury(job_id, kind=fault.kind, error=error)
            if buried:
                log.error("job.buried", job=job_id, **facts, consequence="see: cronq dead show")
            elif buried is False:
                log.warning("message.dropped", job=job_id, **facts, why="its job is not waiting")
            return buried is not None
        if not self._keep_foreign:
            log.error("message.refused", **facts, consequence="it is dropped, as Celery does")
            return True
        kept = self._desk_of_process().keep_message(_dead(message, headers, fault, self._consumer.hostname))
        if kept is not None:
            log.error("message.refused", **facts, dead_letter=kept, consequence="see: cronq dead show")
        return kept is not None


def _dead(message: Any, headers: Mapping[str, Any], fault: Fault, worker: str) -> DeadMessage:  # noqa: ANN401
    origin = message.delivery_info if isinstance(message.delivery_info, Mapping) else {}
    priority = message.properties.get("priority")
    return DeadMessage(
        kind=fault.kind,
        error=fault.why,
        worker=worker,
        task=headers.get("task"),
        message_id=headers.get("id"),
        exchange=origin.get("exchange") or "",
        routing_key=origin.get("routing_key") or "",
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        headers={name: value for name, value in headers.items() if name != "compression"},
        priority=priority if isinstance(priority, int) else None,
        body=_bytes(message.body),
    )


def _bytes(body: Any) -> bytes:  # noqa: ANN401 - whatever stood in the envelope
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    text = body if isinstance(body, str) else json.dumps(body, default=repr)
    return text.encode("utf-8", "surrogatepass")
