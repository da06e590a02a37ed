"""What is missed, and how regular the rest is, when many schedules are due each second."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from benchmarks import cronq_store, redbeat_store
from benchmarks.cronq_store import Settling
from benchmarks.figures import Bar, spread
from benchmarks.options import Options
from benchmarks.queues import Arrival, Queue, drained
from benchmarks.stage import Beat, Stage
from cronq.schedule import Reason

SETTLE_EACH_S = 0.1
WARM_UP_S = 20.0
"""After a start the leader plans a minute ahead of every schedule; that is not what is measured."""
COMPARED = "drift_p99_s"


def bars(_options: Options) -> list[Bar]:
    """Return the bars."""
    return [Bar("missed_pct", 0), Bar("drift_p99_s", 0.020)]


def cronq(stage: Stage, options: Options) -> dict[str, Any]:
    """Measure cronq for a while. Every job is settled about a tenth of a second after its message came."""
    stage.empty()
    timing = {"kind": "every", "seconds": 1}
    names = (f"tenant-{number:05}" for number in range(options.n))
    cronq_store.seed(stage.database, (cronq_store.schedule(name, timing) for name in names))
    with Settling(stage.database_url) as workers, stage.cronq_beat() as beat:
        found = _measure(stage, beat, options, workers.settle)
    found["overlaps"] = cronq_store.count_skipped(stage.database, Reason.OVERLAP)
    return found


def redbeat(stage: Stage, options: Options) -> dict[str, Any]:
    """Measure RedBeat for a while."""
    stage.empty()
    timing, due = redbeat_store.each(1), datetime.now(UTC) + timedelta(seconds=3)
    redbeat_store.seed(stage, ((f"tenant-{number:05}", timing, due) for number in range(options.n)))
    with stage.redbeat() as beat:
        return _measure(stage, beat, options, lambda _ids: None)


def _measure(
    stage: Stage, beat: Beat, options: Options, settle: Callable[[Sequence[str]], None]
) -> dict[str, Any]:
    queue = stage.queue()
    _warm_up(queue, settle)
    # From between two seconds, so that each schedule has as many fire times as there are seconds.
    began = float(int(time.time())) + 1.5
    _collect(queue, began, settle)
    used = beat.cpu_s()
    arrivals = _collect(queue, began + options.seconds, settle)
    used = beat.cpu_s() - used
    found = _figures(arrivals, options)
    queue.close()
    return {
        **found,
        "beat_cpu_pct": round(100 * used / options.seconds, 1),
        "beat_rss_mb": beat.rss_mb(),
    }


def _warm_up(queue: Queue, settle: Callable[[Sequence[str]], None]) -> None:
    deadline = time.time() + 60
    while time.time() < deadline:
        first = queue.drain()
        if first:
            settle([_id_of(each) for each in first])
            break
        time.sleep(0.01)
    _collect(queue, time.time() + WARM_UP_S, settle)


def _collect(queue: Queue, until: float, settle: Callable[[Sequence[str]], None]) -> list[Arrival]:
    taken: list[Arrival] = []
    unsettled: list[Arrival] = []
    settle_at = 0.0
    for arrived in drained(queue, until):
        taken += arrived
        unsettled += arrived
        if unsettled and not arrived and time.time() > settle_at:
            settle([_id_of(each) for each in unsettled])
            unsettled, settle_at = [], time.time() + SETTLE_EACH_S
    settle([_id_of(each) for each in unsettled])
    return taken


def _id_of(arrival: Arrival) -> str:
    return str(arrival.read()[0]["id"])


def _figures(arrivals: list[Arrival], options: Options) -> dict[str, Any]:
    """Drift per fire: by how much the time since the schedule's previous message differs from one second."""
    seen: dict[str, list[float]] = defaultdict(list)
    ids: set[str] = set()
    lags: list[float] = []
    for arrival in arrivals:
        headers, args = arrival.read()
        if headers["id"] in ids:
            continue
        ids.add(headers["id"])
        seen[args[0]].append(arrival.seen_at)
        fire_time = (headers.get("cronq") or {}).get("fire_time")
        if fire_time is not None:
            lags.append(arrival.seen_at - datetime.fromisoformat(fire_time).timestamp())
    drifts = [abs(after - before - 1) for times in seen.values() for before, after in pairwise(times)]
    expected = options.n * options.seconds
    return {
        "fires": len(ids),
        "missed_pct": round(max(0.0, 100 * (1 - len(ids) / expected)), 3),
        "doubled": len(arrivals) - len(ids),
        **spread(drifts, "drift"),
        **(spread(lags, "lag") if lags else {}),
    }
