"""What waiting costs, when very many schedules are stored and few are due."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

from benchmarks import cronq_store, redbeat_store
from benchmarks.cronq_store import Settling
from benchmarks.figures import Bar, spread
from benchmarks.options import Options
from benchmarks.queues import Arrival, drained
from benchmarks.stage import Beat, Stage
from cronq.schedule import Schedule

DUE_EACH_S = 10
WARM_UP_S = 40.0
"""Fire times that passed while the schedules were stored are caught up first, twenty a second."""
READY_LIMIT_S = 120.0
COMPARED = "ready_s"
KEEPS_STORE = True
"""What was seeded once serves every repetition: a million rows take minutes."""


def bars(_options: Options) -> list[Bar]:
    """Return the bars."""
    return [
        Bar("ready_s", 1.5),
        Bar("beat_rss_mb", 150),
        Bar("beat_cpu_pct", 5),
        Bar("lag_p99_s", 0.050),
    ]


def prepare_cronq(stage: Stage, options: Options) -> None:
    """Store the schedules: 600 are due once a minute each, the others on one day of the coming year."""
    cronq_store.seed(stage.database, _schedules(options.n))


def cronq(stage: Stage, options: Options) -> dict[str, Any]:
    """Start a beat over the stored schedules, and watch it."""
    stage.redis.client().flushall()
    before = cronq_store.term(stage.database)
    with Settling(stage.database_url) as workers, stage.cronq_beat() as beat:
        ready_s = _wait(beat, lambda: cronq_store.term(stage.database) > before)
        queue = stage.queue()
        for arrived in drained(queue, time.time() + WARM_UP_S):
            workers.settle([each.read()[0]["id"] for each in arrived])
        used, arrivals = beat.cpu_s(), []
        for arrived in drained(queue, time.time() + options.seconds):
            arrivals += arrived
            workers.settle([each.read()[0]["id"] for each in arrived])
        used = beat.cpu_s() - used
        queue.close()
        return {"ready_s": ready_s, "fires": len(arrivals), **spread(_lags(arrivals), "lag"),
                **_cost(beat, used, options)}  # fmt: skip


def prepare_redbeat(stage: Stage, options: Options) -> None:
    """Store as many entries with the same load."""
    now = datetime.now(UTC)
    soon = now + timedelta(seconds=options.n / 10_000 + 10)
    late = redbeat_store.at_minute(now - timedelta(minutes=2))
    minutely = redbeat_store.each(60)
    busy = DUE_EACH_S * 60
    redbeat_store.seed(
        stage,
        (
            (f"idle-{number:07}", minutely, soon + timedelta(seconds=number / DUE_EACH_S))
            if number < busy
            else (f"idle-{number:07}", late, now + timedelta(days=1))
            for number in range(options.n)
        ),
    )


def redbeat(stage: Stage, options: Options) -> dict[str, Any]:
    """Start RedBeat over them, and watch it. Its messages do not say when they were due."""
    store = redbeat_store.client(stage)
    store.delete(redbeat_store.LOCK_KEY)
    with stage.redbeat() as beat:
        ready_s = _wait(beat, lambda: store.exists(redbeat_store.LOCK_KEY) == 1)
        queue = stage.queue()
        for _ in drained(queue, time.time() + WARM_UP_S):
            pass
        used, fires = beat.cpu_s(), 0
        for arrived in drained(queue, time.time() + options.seconds):
            fires += len(arrived)
        used = beat.cpu_s() - used
        queue.close()
        return {"ready_s": ready_s, "fires": fires, **_cost(beat, used, options)}


def _schedules(total: int) -> Iterator[Schedule]:
    for number in range(total):
        if number < DUE_EACH_S * 60:
            timing = cronq_store.cron(f"{number % 60} * * * * *")
        else:
            # The day before yesterday's date: due in about a year, at one of 1440 minutes.
            day = datetime.now(UTC) - timedelta(days=2)
            timing = cronq_store.cron(f"{number % 60} {number // 60 % 24} {day.day} {day.month} *")
        yield cronq_store.schedule(f"idle-{number:07}", timing)


def _wait(beat: Beat, leads: Any) -> float | None:  # noqa: ANN401 - a question without arguments
    while (waited := time.time() - beat.started_at) < READY_LIMIT_S:
        try:
            if leads():
                return round(waited, 3)
        except redis.RedisError:
            pass
        time.sleep(0.01)
    return None


def _lags(arrivals: list[Arrival]) -> list[float]:
    fire_times = [each.read()[0]["cronq"]["fire_time"] for each in arrivals]
    return [
        each.seen_at - datetime.fromisoformat(fire_time).timestamp()
        for each, fire_time in zip(arrivals, fire_times, strict=True)
    ]


def _cost(beat: Beat, used: float, options: Options) -> dict[str, float]:
    return {"beat_rss_mb": beat.rss_mb(), "beat_cpu_pct": round(100 * used / options.seconds, 2)}
