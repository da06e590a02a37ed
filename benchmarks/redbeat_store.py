"""Puts schedules into RedBeat's store, as its own `save()` would, but many at a time."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import redis
from celery import Celery
from celery.schedules import crontab
from celery.schedules import schedule as every
from redbeat import RedBeatSchedulerEntry
from redbeat.decoder import RedBeatJSONEncoder

from benchmarks.noop import TASK
from benchmarks.stage import QUEUE, Stage

BATCH = 2000
SCHEDULE_KEY = "redbeat::schedule"
LOCK_KEY = "redbeat::lock"


def url_of(stage: Stage) -> str:
    """Return where RedBeat keeps its schedules: beside the broker, not in its database."""
    return stage.redis.url.rpartition("/")[0] + "/1"


def client(stage: Stage) -> redis.Redis:
    """Return a client of that database."""
    return redis.Redis.from_url(url_of(stage))


def entry(stage: Stage, name: str, timing: Any, note: int = 0) -> RedBeatSchedulerEntry:  # noqa: ANN401
    """Return a RedBeat entry of the job that does nothing; `save()` makes or changes it."""
    app = _app(stage.broker_url, url_of(stage))
    return RedBeatSchedulerEntry(name=name, task=TASK, args=[name, note], schedule=timing, app=app)


def at_minute(moment: datetime) -> crontab:
    """Return a daily crontab; RedBeat knows whole minutes only."""
    return crontab(minute=str(moment.minute), hour=str(moment.hour))


def each(seconds: float) -> every:
    """Return a fixed rate."""
    return every(run_every=timedelta(seconds=seconds))


def seed(stage: Stage, entries: Iterable[tuple[str, Any, datetime]]) -> None:
    """Store (name, timing, first due instant) of each entry: what its `save()` writes."""
    now = datetime.now(UTC)
    with client(stage) as store:
        store.flushdb()
        pipeline = store.pipeline(transaction=False)
        for name, timing, due_at in entries:
            _write(pipeline, entry(stage, name, timing), last_run_at=now, due_at=due_at)
            if len(pipeline) >= 3 * BATCH:
                pipeline.execute()
        pipeline.execute()


def _write(pipeline: Any, new: Any, *, last_run_at: datetime, due_at: datetime) -> None:  # noqa: ANN401
    definition = {
        "name": new.name,
        "task": new.task,
        "args": new.args,
        "kwargs": new.kwargs,
        "options": new.options,
        "schedule": new.schedule,
        "enabled": True,
    }
    pipeline.hset(new.key, "definition", json.dumps(definition, cls=RedBeatJSONEncoder))
    pipeline.hset(new.key, "meta", json.dumps({"last_run_at": last_run_at}, cls=RedBeatJSONEncoder))
    pipeline.zadd(SCHEDULE_KEY, {new.key: due_at.timestamp()})


@lru_cache(maxsize=1)
def _app(broker_url: str, redis_url: str) -> Celery:
    app = Celery("bench", broker=broker_url, set_as_current=False)
    app.conf.update(task_default_queue=QUEUE, redbeat_redis_url=redis_url, timezone="UTC", enable_utc=True)
    return app
