"""`cronq up --autoscale`: workers come when a queue is flooded, and go again, and no job is lost by it."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from cronq.job import Trigger, demanded_job_id
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.database import Database
from tests.support.processes import ROOT, Process, wait_for
from tests.support.server import free_port

FLOOD = 300


class Up:
    """One `cronq up`, and what is in its database."""

    def __init__(self, process: Process, database: Database, gate: Path) -> None:
        self.process, self.database, self.gate = process, database, gate

    def workers(self) -> int:
        """How many workers run, those that are about to stop included."""
        found = 0
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):  # it has just gone
                found += {"worker", "-n"} <= set(child.cmdline())
        return found

    def flood(self) -> None:
        now = self.database.clock()
        jobs = [
            DueJob(
                id=demanded_job_id(None),
                task="faults.hold",
                args=[],
                kwargs={},
                due_at=now,
                trigger=Trigger.DEMAND,
            )
            for _ in range(FLOOD)
        ]
        with self.database.begin() as connection:
            insert_jobs(self.database, connection, jobs, now)

    def count(self, columns: str) -> Counter[tuple[object, ...]]:
        with self.database.autocommit() as connection:
            rows = connection.execute(text(f"SELECT {columns}, count(*) FROM cronq_job GROUP BY {columns}"))
            return Counter({tuple(row[:-1]): row[-1] for row in rows})


@pytest.fixture
def up(broker_url: str, redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Up]:
    env = {
        "CRONQ_BROKER_URL": broker_url,
        "CRONQ_REDIS_URL": redis_url,
        "CRONQ_DATABASE_URL": database_url,
        "FAULT_JOURNAL": str(tmp_path / "journal"),
        "FAULT_GATE": str(tmp_path / "gate"),
        "FAULT_SCHEDULES": "2",
        "PYTHONPATH": str(ROOT),
    }
    command = ["cronq", "up", "-A", "tests.support.fault_app", "--autoscale", "1,3", "--no-flower"]
    command += ["--api-port", str(free_port()), "--folder", str(tmp_path / "up")]
    argv = [Path(sys.executable).with_name(command[0]), *command[1:]]
    database = Database(database_url)
    with Process("up", argv, log=tmp_path / "up.log", env=env, cwd=tmp_path) as process:
        yield Up(process, database, tmp_path / "gate")
    database.dispose()


def test_workers_rise_with_a_flood_and_fall_again_and_every_job_runs_once(up: Up) -> None:
    wait_for(lambda: "COMPLETED" in up.process.output(), 60, "the first jobs to run")
    assert up.workers() == 1
    up.flood()
    wait_for(lambda: up.workers() == 3, 60, "three workers")
    up.gate.touch()
    wait_for(lambda: up.count("state")["COMPLETED",] >= FLOOD, 90, "the flood to be worked off")
    wait_for(lambda: up.workers() == 1, 60, "two workers to go")
    said = up.process.output()
    assert "worker-3 starts" in said
    assert "worker-2 stops when its jobs are done" in said
    assert "ended with exit code" not in said, "that a worker was stopped is no accident"
    before = up.count("state")["COMPLETED",]
    wait_for(lambda: up.count("state")["COMPLETED",] > before + 4, 30, "the last worker to go on")
    up.process.stop()
    attempts = {
        number: count
        for (state, number), count in up.count("state, attempts").items()
        if state == "COMPLETED"
    }
    assert set(attempts) == {1}, "no job had to be taken over"
    assert not {"FAILED", "TIMED_OUT"} & {state for (state,) in up.count("state")}
