"""When the first and the last message are on the queue, if all schedules are due at one instant."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import cronq_store, redbeat_store, timers
from benchmarks.figures import Bar, rounded
from benchmarks.options import Options
from benchmarks.queues import Queue
from benchmarks.stage import Beat, Stage

LIMIT_S = 180.0
LINGER_S = 1.0
COMPARED = "last_s"


def bars(options: Options) -> list[Bar]:
    """Return what a burst is measured against."""
    if options.broker == "rabbitmq":
        return [Bar("last_s", 1.5)] if options.n == 10_000 else []
    if options.n == 100_000:
        return [Bar("last_s", 1.2)]
    return [Bar("last_s", 0.15), Bar("first_s", 0.03), Bar("ratio", 45, at_least=True)]


def cronq(stage: Stage, options: Options) -> dict[str, Any]:
    """Measure one burst of cronq."""
    stage.empty()
    due = _due(8 + options.n / (1500 if stage.database_kind == "sqlite" else 1000), whole_minute=False)
    timing = cronq_store.cron(f"{due.second} {due.minute} {due.hour} * * *")
    names = (f"tenant-{number:07}" for number in range(options.n))
    cronq_store.seed(stage.database, (cronq_store.schedule(name, timing) for name in names), due)
    env = {"BENCH_TIMERS": "1"} if options.timers else {}
    with stage.cronq_beat(**env) as beat:
        planned_ahead_s = _wait_planned(stage, options.n, due)
        found = _watch(stage.queue(), beat, due.timestamp(), options.n)
        rendered = {"planned_ahead_s": planned_ahead_s}
        if options.timers:
            time.sleep(2)
            rendered["timers"] = timers.read(stage.folder)
    return {**found, **rendered}


def redbeat(stage: Stage, options: Options) -> dict[str, Any]:
    """Measure one burst of RedBeat."""
    stage.empty()
    due = _due(6 + options.n / 1500, whole_minute=True)
    timing = redbeat_store.at_minute(due)
    redbeat_store.seed(stage, ((f"tenant-{number:07}", timing, due) for number in range(options.n)))
    with stage.redbeat() as beat:
        return _watch(stage.queue(), beat, due.timestamp(), options.n)


def _due(lead_s: float, *, whole_minute: bool) -> datetime:
    earliest = datetime.now(UTC) + timedelta(seconds=lead_s)
    if whole_minute:
        return earliest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return earliest.replace(microsecond=0) + timedelta(seconds=1)


def _wait_planned(stage: Stage, total: int, due: datetime) -> float | None:
    """Return how long before the instant all jobs were stored; None: it was not in time."""
    while (left := due.timestamp() - time.time()) > 1.5:
        if cronq_store.count_planned(stage.database) >= total:
            return round(left, 1)
        time.sleep(0.5)
    return None


def _watch(queue: Queue, beat: Beat, due: float, total: int) -> dict[str, Any]:
    while time.time() < due - 0.2:
        time.sleep(0.05)
    used = beat.cpu_s()
    rss_before = beat.rss_mb()
    curve = _curve(queue, due, total)
    used = beat.cpu_s() - used
    time.sleep(LINGER_S)
    surplus = queue.length() - total
    queue.close()
    return {
        "first_s": rounded(curve[0][0]) if curve else None,
        "p50_s": _reached(curve, total * 0.5),
        "p99_s": _reached(curve, total * 0.99),
        "last_s": _reached(curve, total),
        "doubled": max(0, surplus),
        "missing": max(0, -surplus),
        "beat_cpu_s": round(used, 3),
        "beat_rss_mb": rss_before,
    }


def _curve(queue: Queue, due: float, total: int) -> list[tuple[float, int]]:
    """Return (seconds after the instant, length) for each look that found more than the one before."""
    curve: list[tuple[float, int]] = []
    last = 0
    while last < total and time.time() < due + LIMIT_S:
        length = queue.length()
        if length > last:
            curve.append((time.time() - due, length))
            last = length
        time.sleep(queue.step_s)
    return curve


def _reached(curve: list[tuple[float, int]], wanted: float) -> float | None:
    return next((rounded(after) for after, length in curve if length >= wanted), None)
