"""One fire time, very many items: how long until all are found and on the broker, and with how much memory.

The leader is killed when half of them are on the broker; nobody works the items off.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from benchmarks import cronq_store
from benchmarks.options import Options
from benchmarks.stage import Beat, Stage, load
from cronq.timing import At

SCHEDULE: Final = "all-of-them"
LOOK_S: Final = 0.1
LIMIT_S: Final = 600.0


def items(count: int) -> Iterator[str]:
    """Yield the items; a worker calls it."""
    for number in range(count):
        yield f"item-{number:07}"


def run_fan_out(options: Options) -> dict[str, Any]:
    """Fan `n` items out once."""
    with Stage(options.broker, options.database) as stage:
        due = datetime.now(UTC) + timedelta(seconds=1)
        source = {"function": "benchmarks.fan_out:items", "kwargs": {"count": options.n}}
        fan_out = cronq_store.schedule(SCHEDULE, At(due).to_data(), fan_out=source)
        cronq_store.seed(stage.database, [fan_out])
        worker = stage.worker("cronq_app", "--pool", "solo", BENCH_PREFETCH="1")
        leader, standby = stage.cronq_beat("beat-0"), stage.cronq_beat("beat-1")
        with worker, leader:
            _wait(lambda: cronq_store.leader_pid(stage) == leader.pid)
            with standby:
                return _watch(stage, options, worker.pid, leader, standby)


def _watch(stage: Stage, options: Options, worker: int, leader: Beat, standby: Beat) -> dict[str, Any]:
    queue, most, began = stage.queue(), Counter[str](), time.monotonic()
    facts: dict[str, Any] = {"items": options.n, "database": options.database, "load": load()}
    killed_at = None
    while True:
        length = queue.length()
        for name, pid in (("worker", worker), ("leader", leader.pid), ("standby", standby.pid)):
            most[name] = max(most[name], _peak_mb(pid))
        if killed_at is None and length >= options.n / 2:
            os.kill(leader.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            facts["half_s"] = round(killed_at - began, 1)
        if "found_s" not in facts and (found_s := _found_s(stage)) is not None:
            os.kill(worker, signal.SIGKILL)  # it found them; the items are nobody's here
            facts["found_s"] = round(found_s, 1)
        if killed_at and "idle_s" not in facts and length > options.n / 2 and _leads(stage, standby):
            facts["idle_s"] = round(time.monotonic() - killed_at, 1)
        if "found_s" in facts and length >= options.n and _unsent(stage) == 0:
            break
        if time.monotonic() - began > LIMIT_S:
            raise TimeoutError(f"{length} of {options.n} after {LIMIT_S:g} s:\n{standby.process.tail()}")
        time.sleep(LOOK_S)
    took = time.monotonic() - began
    facts |= {"all_s": round(took, 1), "items_per_s": round(options.n / took)}
    facts |= {"sent_twice": queue.length() - options.n, "of_one_item": _most_of_one(stage)}
    return facts | {f"{name}_peak_mb": count for name, count in most.items()}


def _found_s(stage: Stage) -> float | None:
    with stage.database.autocommit() as connection:
        row = connection.execute(
            text("SELECT started_at, finished_at FROM cronq_job WHERE id = batch_id AND state = 'COMPLETED'")
        ).one_or_none()
    if row is None:
        return None
    started, finished = (
        datetime.fromisoformat(each) if isinstance(each, str) else each for each in (row[0], row[1])
    )
    return float((finished - started).total_seconds())


def _unsent(stage: Stage) -> int:
    return cronq_store.count_by_state(stage.database).get("SCHEDULED", 0)


def _most_of_one(stage: Stage) -> int:
    """Return how many jobs the item has that has the most; one is right."""
    with stage.database.autocommit() as connection:
        return int(
            connection.execute(
                text("SELECT max(n) FROM (SELECT count(*) AS n FROM cronq_job GROUP BY item) AS of_one")
            ).scalar_one()
        )


def _leads(stage: Stage, beat: Beat) -> bool:
    return cronq_store.leader_pid(stage) == beat.pid


def _peak_mb(pid: int) -> int:
    """Return the most memory that a process has held so far; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in status.splitlines() if "VmHWM" in line), 0)


def _wait(condition: Any) -> None:  # noqa: ANN401 - a question
    until = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("no beat leads")
        time.sleep(LOOK_S)
