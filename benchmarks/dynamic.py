"""How long one changed schedule among many takes to be in effect.

Each change is made a tenth of a second before a whole second, and the changed schedule is due at every whole
second: the figure is the time from the call until the first message under the new definition.
"""

import dataclasses
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import cronq_store, redbeat_store
from benchmarks.cronq_store import Settling
from benchmarks.figures import Bar
from benchmarks.options import Options
from benchmarks.queues import Arrival, Queue, drained
from benchmarks.stage import Stage
from cronq.schedule import Overlap

LEAD_S = 0.1
LIMIT_S = 20.0
COMPARED = "args_s"


def bars(_options: Options) -> list[Bar]:
    """Return the bars."""
    return [Bar("timing_s", 1.0), Bar("args_s", 1.0), Bar("removed_s", 1.0)]


def cronq(stage: Stage, options: Options) -> dict[str, Any]:
    """Change timing, then arguments, then take the schedule back to a far fire time."""
    stage.empty()
    far = cronq_store.cron("0 0 29 2 *")
    schedules = [cronq_store.schedule(f"tenant-{number:06}", far) for number in range(options.n)]
    cronq_store.seed(stage.database, schedules)
    # `allow`: no worker is there to end the probe's jobs within their second.
    probe = dataclasses.replace(schedules[options.n // 2], overlap=Overlap.ALLOW)
    every_second = dataclasses.replace(probe, timing={"kind": "every", "seconds": 1})
    with Settling(stage.database_url) as workers, stage.cronq_beat() as beat:
        while not cronq_store.term(stage.database) and time.time() < beat.started_at + 60:
            time.sleep(0.05)
        queue = stage.queue()
        time.sleep(2.0)
        return {
            **_change("timing_s", queue, lambda: cronq_store.edit(stage, every_second), 0, workers),
            **_change(
                "args_s",
                queue,
                lambda: cronq_store.edit(stage, dataclasses.replace(every_second, args=(probe.name, 1))),
                1,
                workers,
            ),
            "removed_s": _last_after(queue, lambda: cronq_store.edit(stage, probe)),
        }


def redbeat(stage: Stage, options: Options) -> dict[str, Any]:
    """Do the same to an entry of RedBeat; it looks each 5 s unless something is due sooner."""
    stage.empty()
    now = datetime.now(UTC)
    far = redbeat_store.at_minute(now - timedelta(minutes=2))
    due = now + timedelta(days=1)
    redbeat_store.seed(stage, ((f"tenant-{number:06}", far, due) for number in range(options.n)))
    name = f"tenant-{options.n // 2:06}"
    with stage.redbeat():
        queue = stage.queue()
        time.sleep(4.0)
        second = redbeat_store.each(1)
        return {
            **_change("timing_s", queue, redbeat_store.entry(stage, name, second).save, 0, None),
            **_change("args_s", queue, redbeat_store.entry(stage, name, second, 1).save, 1, None),
            "removed_s": _last_after(queue, redbeat_store.entry(stage, name, far).save),
        }


def _change(
    figure: str, queue: Queue, change: Callable[[], None], note: int, workers: Settling | None
) -> dict[str, float | None]:
    _sleep_until_before_second()
    began = time.time()
    change()
    returned = time.time()
    for arrived in drained(queue, began + LIMIT_S):
        if workers is not None:
            workers.settle([each.read()[0]["id"] for each in arrived])
        for each in arrived:
            if each.seen_at > began and each.read()[1][1] == note:
                return {figure: round(each.seen_at - began, 4), f"{figure}_call": round(returned - began, 4)}
    return {figure: None}


def _last_after(queue: Queue, change: Callable[[], None]) -> float:
    """Return how long after the change the last message came that it should have prevented."""
    _sleep_until_before_second()
    began = last = time.time()
    change()
    for arrived in drained(queue, began + 8):
        # Not those of earlier fire times: nobody claims them here, so they are sent again.
        last = max([last, *(each.seen_at for each in arrived if _due_at(each) > began)])
    return round(last - began, 4)


def _due_at(arrival: Arrival) -> float:
    fire_time = (arrival.read()[0].get("cronq") or {}).get("fire_time")
    return arrival.seen_at if fire_time is None else datetime.fromisoformat(fire_time).timestamp()


def _sleep_until_before_second() -> None:
    now = time.time()
    time.sleep(float(int(now)) + 2 - LEAD_S - now)
