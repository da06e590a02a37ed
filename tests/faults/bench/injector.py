"""Hurts an installation, one fault after the other, and writes down what it did and when."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from cronq.job import Trigger, demanded_job_id
from cronq.store.agenda import DueJob
from cronq.store.database import Database
from cronq.store.jobs import add_job
from tests.faults.bench.history import Demanded, Fault
from tests.faults.bench.installation import WORKERS, Installation
from tests.faults.bench.timings import LOCK_S

POLL_S = 0.05
HANDOVER_RECOVER_S = LOCK_S + 1.0
READY_WITHIN_S = 60.0


@dataclass
class Injector:
    """The faults done so far to one installation."""

    installation: Installation
    random: random.Random
    say: Callable[[str], None]
    faults: list[Fault] = field(default_factory=list)
    demanded: list[Demanded] = field(default_factory=list)

    @contextmanager
    def fault(self, kind: str, **facts: object) -> Iterator[None]:
        """Write down the fault that the block does: it begins and ends with it."""
        self.say(kind)
        place = len(self.faults)
        started = Fault(kind, time.monotonic(), float("inf"), **facts)
        self.faults.append(started)
        try:
            yield
        finally:
            self.faults[place] = replace(self.faults[place], end=time.monotonic())

    def note(self, kind: str, **facts: object) -> None:
        """Write down a fault of this instant."""
        with self.fault(kind, **facts):
            pass

    def amend(self, **facts: object) -> None:
        """Write down more about the last fault."""
        self.faults[-1] = replace(self.faults[-1], **facts)

    def wait(self, seconds: float) -> None:
        """Let time pass, and see that nobody ends meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.installation.watch()
            time.sleep(min(POLL_S, left))

    def wait_until(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout:g} s for {what}")
            self.installation.watch()
            time.sleep(0.01)

    def settle(self, rest_s: float) -> None:
        """Start again what is down, wait until everyone is up, and let it work for a moment."""
        for name in sorted(self.installation.down & self.installation.processes.keys()):
            self.installation.start(name)
        self.all_ready()
        self.wait(rest_s)

    def all_ready(self) -> None:
        at = self.installation
        self.wait_until(lambda: all(map(at.ready, at.processes)), READY_WITHIN_S, "every process to be up")

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Freeze a process for the block; note if it holds SQLite's write lock, which stops everybody."""
        process = self.installation.processes[name]
        process.pause()
        try:
            if self._write_lock_is_held():
                self.amend(held_write_lock=True, hurt=frozenset(WORKERS))
            yield
        finally:
            process.resume()

    def _write_lock_is_held(self) -> bool:
        at = self.installation
        if at.kind != "sqlite":
            return False
        engine = create_engine(at.database_url, connect_args={"timeout": 0.5})
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                connection.exec_driver_sql("ROLLBACK")
        except OperationalError:
            return True
        finally:
            engine.dispose()
        return False

    def demand(self, task: str, count: int = 1, *, queue: str | None = None, poison: bool = False) -> None:
        """Ask for jobs that are due now."""
        database = Database(self.installation.database_url)
        due_at = database.clock()
        jobs = [
            DueJob(
                id=demanded_job_id(None), task=task, args=[], kwargs={}, queue=queue,
                due_at=due_at, trigger=Trigger.DEMAND,
            )
            for _ in range(count)
        ]  # fmt: skip
        with database.begin() as connection:
            for job in jobs:
                add_job(database, job, due=0, session=connection)
        asked = time.monotonic()
        self.demanded += [Demanded(job.id, asked, poison=poison) for job in jobs]
        database.dispose()

    def armed_beat_leads(self, failpoint: str) -> str:
        """Let a beat lead that dies, freezes or fails at a fail-point; return its name."""
        at = self.installation
        leader, armed = at.leader(), at.standby()
        at.stop(armed)
        at.start(armed, failpoint=failpoint)
        self.all_ready()
        with self.fault("leader told to stop", recover_s=HANDOVER_RECOVER_S, handover=True):
            at.down.add(leader)
            at.processes[leader].stop(30)
        at.start(leader)
        return armed
