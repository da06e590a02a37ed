"""Puts cronq around a Celery worker that starts."""

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from celery import Celery, signals
from celery.worker import state

from cronq.app import Cronq, cronq_of, senders_of_events
from cronq.delivery.quarantine import guard_redis_transport, keep_malformed
from cronq.delivery.receipts import spare_receipts
from cronq.delivery.reconnect import reconnect_promptly
from cronq.store.schema import require_schema
from cronq.worker.lease_guardian import LeaseGuardian
from cronq.worker.refusal import guard_consumer
from cronq.worker.task import hand_back_when_cold, wrap_tasks
from cronq.worker.webhook import add_webhook_task


def prepare_worker(app: Celery, hostname: str, *, events: bool, slots: Callable[[], int]) -> None:
    """Put cronq around the tasks of a worker that starts; raise `CronqError` if it could not do its work.

    slots: how many jobs at a time it does, once it has started.

    An app that neither `configure` nor the environment ties to cronq may never get one of its messages: such
    a worker starts in any case, and opens the stores with the first one.
    """
    if events:
        senders_of_events[id(app)] = hostname
    tied = bool(app.conf.get("cronq_configured")) or "CRONQ_DATABASE_URL" in os.environ
    if tied:
        parts = cronq_of(app)
        require_schema(parts.database)
        parts.database.dispose()  # pool children must not inherit a connection
        note = _NoteWorker(parts, slots)
        signals.heartbeat_sent.connect(note, weak=False, dispatch_uid=f"cronq.alive.{id(app)}")
    add_webhook_task(app, lambda: cronq_of(app).database, lambda: cronq_of(app).settings)
    reconnect_promptly(app)
    wrap_tasks(app, lambda: cronq_of(app).desk)

    def on_ready(sender: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        if sender.pool.__class__.__module__ != "celery.concurrency.prefork":
            hand_back_when_cold(sender, lambda: cronq_of(app).desk)
        elif tied:
            parts = cronq_of(app)
            LeaseGuardian(
                parts.database,
                str(sender.hostname),
                lease_s=parts.settings.lease_s,
                in_hand=lambda: {request.id for request in tuple(state.active_requests)},
            ).start()

    signals.worker_ready.connect(on_ready, weak=False, dispatch_uid=f"cronq.ready.{id(app)}")
    settings = cronq_of(app).settings
    guard_redis_transport(lambda text: keep_malformed(cronq_of(app).redis, settings.key_prefix, text))
    spare_receipts()
    guard_consumer(
        app,
        lambda: cronq_of(app).desk,
        max_payload_bytes=settings.max_payload_bytes,
        keep_foreign=tied,
    )


class _NoteWorker:
    """Notes that a worker's event loop turns, and what it consumes, at most every other second."""

    def __init__(self, parts: Cronq, slots: Callable[[], int]) -> None:
        self._parts, self._slots, self._next = parts, slots, 0.0

    def __call__(self, sender: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 2.0
            hostname = str(sender.eventer.hostname)
            self._parts.workers.tell(
                hostname,
                host=socket.gethostname(),
                pid=os.getpid(),
                queues=sorted(self._parts.app.amqp.queues.consume_from),
                slots=self._slots(),
            )
