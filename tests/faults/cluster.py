"""One installation under test: its processes, and what it must never do."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cronq.job import Trigger, demanded_job_id
from cronq.store.agenda import DueJob
from cronq.store.database import Database
from cronq.store.jobs import add_job, attempts_of, get_job
from cronq.store.schema import upgrade
from cronq.store.terms import Term, read_term
from tests.support.processes import Process, Processes, wait_for

APP = "tests.support.fault_app"
LOCK_S, LEASE_S = 1, 2
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Line:
    """One line of the journal: what a task body wrote."""

    what: str
    job_id: str
    attempt: int
    pid: int
    at: float


class Cluster:
    """Beats and workers on one database, one Redis and one broker."""

    def __init__(
        self, processes: Processes, folder: Path, database_url: str, redis_url: str, broker_url: str
    ) -> None:
        self.processes = processes
        self.app = APP
        self.journal, self.gate = folder / "journal", folder / "gate"
        self.broker_url = broker_url
        self.schedules = 2
        self.env = {
            "CRONQ_DATABASE_URL": database_url,
            "CRONQ_REDIS_URL": redis_url,
            "CRONQ_BROKER_URL": broker_url,
            "CRONQ_LOCK_S": str(LOCK_S),
            "CRONQ_LEASE_S": str(LEASE_S),
            "CRONQ_REPUBLISH_S": "2",
            "CRONQ_STANDBY_POLL_S": "0.1",
            "FAULT_JOURNAL": str(self.journal),
            "FAULT_GATE": str(self.gate),
            "FAULT_SCHEDULES": str(self.schedules),
        }
        self.database = Database(database_url)
        upgrade(self.database)

    def close(self) -> None:
        self.database.dispose()

    # -- processes -----------------------------------------------------------------------------------------

    def beat(self, name: str, failpoint: str | None = None, **env: str) -> Process:
        extra = {} if failpoint is None else {"CRONQ_FAILPOINT": failpoint}
        return self.processes.beat(name, self.app, env={**self.env, **env, **extra})

    def leading_beat(self, name: str, failpoint: str | None = None, **env: str) -> Process:
        beat = self.beat(name, failpoint, **env)
        self.wait_for_lead(beat)
        return beat

    def worker(self, name: str, *args: str, pool: str = "threads", failpoint: str | None = None) -> Process:
        options = ("--pool", pool, "-c", "2", "--without-mingle", "--without-gossip", *args)
        extra: Mapping[str, str] = {} if failpoint is None else {"CRONQ_FAILPOINT": failpoint}
        return self.processes.worker(name, self.app, *options, env={**self.env, **extra})

    def working(self, name: str, *args: str, **how: Any) -> Process:
        worker = self.worker(name, *args, **how)
        wait_for(lambda: " ready." in worker.new_output(), 20, f"{name} to be ready")
        return worker

    def term(self) -> Term | None:
        return read_term(self.database, 0)

    def wait_for_lead(self, beat: Process, timeout: float = 20) -> Term:
        def leads() -> Term | None:
            assert beat.running, beat.tail()
            term = self.term()
            return term if term is not None and term.pid == beat.pid else None

        term = wait_for(leads, timeout, f"{beat.name} to lead", ignoring=DBAPIError)
        assert term is not None
        return term

    # -- jobs ----------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.database.clock()

    def clock_without_servers(self) -> Callable[[], datetime]:
        """Return a clock that goes on while the database is away."""
        offset = self.now() - datetime.now(UTC)
        return lambda: datetime.now(UTC) + offset

    def demand(self, task: str, **facts: Any) -> str:
        """Ask for one job of `task`; the leader finds it within a second."""
        values: dict[str, Any] = {
            "id": demanded_job_id(None),
            "args": [],
            "kwargs": {},
            "due_at": self.now(),
            "trigger": Trigger.DEMAND,
        }
        job = DueJob(task=task, **{**values, **facts})
        add_job(self.database, job, due=0)
        return job.id

    def row(self, job_id: str) -> Any:
        return get_job(self.database, job_id)

    def attempts(self, job_id: str) -> list[tuple[int, str, str | None]]:
        return [(a["number"], a["outcome"], a["kind"]) for a in attempts_of(self.database, job_id)]

    def wait_for_state(self, job_id: str, *states: str, timeout: float = 20) -> Any:
        wait_for(
            lambda: self.row(job_id)["state"] in states,
            timeout,
            f"job {job_id} to be {' or '.join(states)}",
            ignoring=DBAPIError,
        )
        return self.row(job_id)

    def lines(self, job_id: str | None = None, what: str | None = None) -> list[Line]:
        if not self.journal.exists():
            return []
        lines = [line.split() for line in self.journal.read_text().splitlines()]
        made = [Line(w, j, int(a), int(pid), float(at)) for w, j, a, pid, at in lines]
        return [each for each in made if job_id in (None, each.job_id) and what in (None, each.what)]

    def wait_for_start(self, job_id: str, attempt: int = 1, timeout: float = 20) -> Line:
        def started() -> list[Line]:
            return [line for line in self.lines(job_id, "start") if line.attempt == attempt]

        return wait_for(started, timeout, f"attempt {attempt} of {job_id} to start")[0]

    def fires(self, until: datetime | None = None) -> list[Any]:
        """Return all scheduled jobs with a fire time up to `until`, in order."""
        query = text("""
            SELECT id, schedule_name, state FROM cronq_job WHERE schedule_name IS NOT NULL ORDER BY fire_time
        """)
        with self.database.autocommit() as connection:
            found = [get_job(self.database, row.id) for row in connection.execute(query)]
        return [row for row in found if until is None or row["fire_time"] <= until]

    def wait_for_fires(self, seconds: float, timeout: float = 25) -> None:
        """Wait until the fire times of the next `seconds` have all run."""
        until = self.now() + seconds * SECOND
        self.wait_until_done(until, timeout)

    def wait_until_done(self, until: datetime, timeout: float = 25) -> None:
        def done() -> bool:
            if self.now() < until + SECOND:
                return False
            due = self.fires(until)
            last = {row["schedule_name"]: row["fire_time"] for row in due}
            return (
                len(last) == self.schedules
                and all(row["state"] == "COMPLETED" for row in due)
                and min(last.values()) > until - SECOND
            )

        wait_for(done, timeout, f"every fire time up to {until} to be done", ignoring=DBAPIError)

    def assert_each_fire_time_ran_once(self, until: datetime) -> None:
        """No second is missing, none is there twice, and each body ran to its end exactly once."""
        jobs = self.fires(until)
        for name in sorted({row["schedule_name"] for row in jobs}):
            fire_times = [row["fire_time"] for row in jobs if row["schedule_name"] == name]
            expected = [
                fire_times[0] + number * SECOND
                for number in range(int((fire_times[-1] - fire_times[0]) / SECOND) + 1)
            ]
            assert fire_times == expected, f"{name} has a gap or a double"
        assert {row["state"] for row in jobs} == {"COMPLETED"}
        ids = [row["id"] for row in jobs]
        for what in ("start", "end"):
            counts = Counter(line.job_id for line in self.lines(what=what))
            wrong = {job_id: counts[job_id] for job_id in ids if counts[job_id] != 1}
            assert not wrong, f"bodies that did not {what} exactly once: {wrong}"

    def run_and_check(self, seconds: float = 2, timeout: float = 25) -> None:
        """Let `seconds` more of fire times run, then judge all of them from the first one on."""
        until = self.now() + seconds * SECOND
        self.wait_until_done(until, timeout)
        self.assert_each_fire_time_ran_once(until)

    def worst_lateness(self, since: datetime, until: datetime) -> float:
        """Return by how many seconds the latest of the jobs fired between the two was published."""
        fired = [row for row in self.fires(until) if row["fire_time"] >= since]
        return max((row["published_at"] - row["fire_time"]).total_seconds() for row in fired)


def stopped_by_itself(process: Process) -> bool:
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


def wake(process: Process) -> None:
    os.kill(process.pid, signal.SIGCONT)
