"""Celery imports this in every process it starts, wherever `celery-cronq` is installed.

So a worker of an app that has never heard of cronq claims, leases and settles its jobs all the same. Plain
messages are not touched.
"""

import logging
import sys
from typing import Any

from celery import signals


def activate() -> None:
    """Listen for a worker that starts. Importing cronq costs nothing else."""
    signals.celeryd_init.connect(_prepare_worker, weak=False, dispatch_uid="cronq.prepare_worker")
    for ready in (signals.after_setup_logger, signals.after_setup_task_logger):
        ready.connect(_format_lines, weak=False, dispatch_uid="cronq.format_lines")


def _prepare_worker(instance: Any, options: Any, **_kwargs: Any) -> None:  # noqa: ANN401
    from cronq.errors import CronqError  # noqa: PLC0415 - only a worker needs all of it
    from cronq.worker_setup import prepare_worker  # noqa: PLC0415

    try:
        events = instance.app.either("worker_send_task_events", options.get("task_events"))
        for name in ("time_limit", "soft_time_limit"):
            if options.get(name):
                instance.app.conf[f"task_{name}"] = options[name]  # the pool's children read it from there
        prepare_worker(
            instance.app,
            str(instance.hostname),
            events=bool(events),
            slots=lambda: int(getattr(instance, "max_concurrency", None) or instance.concurrency or 1),
        )
    except CronqError as error:
        sys.stderr.write(f"cronq: {error}\n")
        raise SystemExit(1) from None


def _format_lines(logger: logging.Logger, **_kwargs: Any) -> None:  # noqa: ANN401
    from cronq.settings import load_settings  # noqa: PLC0415
    from cronq.telemetry.log import JsonFormatter, Masking  # noqa: PLC0415

    as_json = load_settings().log_format == "json"
    for handler in logger.handlers:
        handler.setFormatter(JsonFormatter() if as_json else Masking(handler.formatter))
