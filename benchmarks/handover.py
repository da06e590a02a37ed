"""How long after the leader was told to stop, or killed, the standby publishes."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import cronq_store
from benchmarks.cronq_store import Settling
from benchmarks.figures import Bar, percentile, rounded
from benchmarks.options import Options
from benchmarks.queues import Queue, drained
from benchmarks.stage import Beat, Stage
from cronq.settings import Settings

HAND_OVERS = 5
PHASES = 40
LIMIT_S = 60.0
COMPARED = "sigkill_max_s"


def bars(_options: Options) -> list[Bar]:
    """Return what the slowest of all hand-overs is measured against."""
    lock_s = float(Settings.model_fields["lock_s"].default)
    return [Bar("sigterm_max_s", 0.5), Bar("sigkill_max_s", lock_s + 1)]


def cronq(stage: Stage, options: Options) -> dict[str, Any]:
    """End the leader ten times. Among `n` schedules, 40 are due each second, one each 25 ms."""
    stage.empty()
    _seed(stage, options.n)
    gaps: dict[str, list[float]] = {"sigterm": [], "sigkill": []}
    late: list[float] = []
    with Settling(stage.database_url) as workers:
        queue = stage.queue()
        leader = stage.cronq_beat("beat-0")
        leader.__enter__()
        _wait_for_message_of(leader, queue, workers)
        for number in range(1, 2 * HAND_OVERS + 1):
            standby = stage.cronq_beat(f"beat-{number}")
            standby.__enter__()
            _settle_until_up(stage, standby, queue, workers)
            name = "sigterm" if number % 2 else "sigkill"
            began = time.time()
            os.kill(leader.pid, signal.SIGTERM if name == "sigterm" else signal.SIGKILL)
            gap, latest = _wait_for_message_of(standby, queue, workers, since=began)
            gaps[name].append(gap)
            late.append(latest)
            leader.__exit__()
            leader = standby
        leader.__exit__()
        queue.close()
    figures: dict[str, Any] = {}
    for name, values in gaps.items():
        figures[f"{name}_p50_s"] = rounded(percentile(values, 0.5))
        figures[f"{name}_max_s"] = rounded(max(values))
    return {**figures, "latest_fire_s": rounded(max(late)), "gaps_of_each": gaps}


def _seed(stage: Stage, total: int) -> None:
    midnight = datetime(2026, 1, 1, tzinfo=UTC)
    far = cronq_store.cron("0 0 29 2 *")
    for phase in range(PHASES):
        anchor = midnight + timedelta(milliseconds=25 * phase)
        timing = {"kind": "every", "seconds": 1, "anchor": anchor.isoformat()}
        cronq_store.seed(stage.database, [cronq_store.schedule(f"phase-{phase:02}", timing)])
    cronq_store.seed(
        stage.database, (cronq_store.schedule(f"far-{number:06}", far) for number in range(total - PHASES))
    )


def _wait_for_message_of(
    beat: Beat, queue: Queue, workers: Settling, since: float | None = None
) -> tuple[float, float]:
    """Return when the first message that `beat` wrote came, and how late the latest one before it was."""
    began = beat.started_at if since is None else since
    latest = 0.0
    for arrived in drained(queue, time.time() + LIMIT_S):
        read = [(each.seen_at, each.read()[0]) for each in arrived]
        workers.settle([headers["id"] for _seen_at, headers in read])
        for seen_at, headers in read:
            fire_time = datetime.fromisoformat(headers["cronq"]["fire_time"]).timestamp()
            latest = max(latest, seen_at - fire_time)
            if headers["origin"].startswith(f"gen{beat.pid}@"):
                return seen_at - began, latest
    raise TimeoutError(f"no message of {beat.process.name} within {LIMIT_S:g} s:\n{beat.process.tail()}")


def _settle_until_up(stage: Stage, standby: Beat, queue: Queue, workers: Settling) -> None:
    """Go on until the standby has been on the roll for a second: what is measured is not its start."""
    up_since: float | None = None
    for arrived in drained(queue, time.time() + LIMIT_S):
        workers.settle([each.read()[0]["id"] for each in arrived])
        if up_since is None and standby.pid in cronq_store.beat_pids(stage):
            up_since = time.time()
        if up_since is not None and time.time() > up_since + 1:
            return
    raise TimeoutError(f"{standby.process.name} was not up within {LIMIT_S:g} s:\n{standby.process.tail()}")
