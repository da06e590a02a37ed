"""One run: build an installation, do faults to it, wait until it is done with its work, judge."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from tests.faults.bench import journal
from tests.faults.bench.catalogue import KINDS
from tests.faults.bench.checker import ENDS, Verdict, check
from tests.faults.bench.history import AttemptRow, Expected, History, Row
from tests.faults.bench.injector import Injector
from tests.faults.bench.installation import Installation
from tests.faults.bench.timings import HORIZON_S, LEASE_S, LOCK_S
from tests.faults.bench.workload import workload

QUIET_S = 3.0
"""Seconds of work before the first fault, and after the last one."""
REST_S = (1.5, 3.0)


@dataclass(frozen=True)
class Setup:
    """What is run, on what."""

    broker: str
    database: str
    seed: int
    ticks: int
    mutant: str | None = None
    statements: tuple[str, ...] = ()  #: done to the database before anything starts
    horizon_s: float = HORIZON_S
    done_within_s: float = 45.0  #: how long jobs get to end when it is over

    @property
    def title(self) -> str:
        return f"{self.broker} and {self.database}"


@dataclass
class Run:
    """What came out."""

    setup: Setup
    history: History
    verdict: Verdict
    began: float  #: the first fire time, on the journal's clock
    until: float


def run(setup: Setup, kinds: Iterable[str], say: Callable[[str], None], *, keep: bool = False) -> Run:
    """Do the faults `kinds` one after the other, then judge. keep: leave the journal and the logs behind."""
    folder = Path(tempfile.mkdtemp(prefix="cronq-faults-"))
    if keep:
        say(f"journal, logs and rows are kept in {folder}")
    try:
        return _run(setup, kinds, say, folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _run(setup: Setup, kinds: Iterable[str], say: Callable[[str], None], folder: Path) -> Run:
    with Installation(
        folder,
        setup.broker,
        setup.database,
        ticks=setup.ticks,
        mutant=setup.mutant,
        statements=setup.statements,
        horizon_s=setup.horizon_s,
    ) as installation:
        chance = random.Random(setup.seed)
        injector = Injector(installation, chance, say)
        injector.all_ready()
        first = installation.start_ms / 1000 - installation.wall_minus_monotonic
        # On a busy machine all are up only after the first fire times.
        began = max(first, installation.now()) + 1.0
        injector.wait(began + QUIET_S - installation.now())
        for name in kinds:
            KINDS[name].do(injector)
            injector.settle(chance.uniform(*REST_S))
        injector.wait(QUIET_S)
        until = installation.now()
        _wait_until_done(injector, until, setup.done_within_s)
        history = _collect(injector, began, until)
        (folder / "rows").write_text(
            "\n".join(map(str, installation.query("SELECT * FROM cronq_job ORDER BY due_at")))
        )
    return Run(setup, history, check(history), began, until)


def _wait_until_done(injector: Injector, until: float, within_s: float) -> None:
    """Wait until every job that was due is over; what is not by then is stuck, and the checker says so."""
    at = injector.installation
    moment = datetime.fromtimestamp(until + at.wall_minus_monotonic, UTC)
    if at.kind == "sqlite":
        moment = moment.replace(tzinfo=None)
    ends = ", ".join(f"'{state}'" for state in sorted(ENDS))
    waiting = (
        "SELECT count(*) FROM cronq_job "
        f"WHERE coalesce(fire_time, planned_at) <= :until AND state NOT IN ({ends})"
    )
    deadline = time.monotonic() + within_s
    # Retries are due a little later than what they repeat.
    injector.wait(2.0)
    while time.monotonic() < deadline:
        try:
            if at.query(waiting, until=str(moment) if at.kind == "sqlite" else moment)[0][0] == 0:
                return
        except SQLAlchemyError as error:
            injector.say(f"(the database does not answer: {error})")
        injector.wait(0.5)


def _collect(injector: Injector, began: float, until: float) -> History:
    at = injector.installation
    offset = at.wall_minus_monotonic
    since_ms, until_ms = (int((moment + offset) * 1000) for moment in (began, until))
    expected = [
        Expected(each.name, fire_ms, fire_ms / 1000 - offset, each.overlap, each.catch_up, each.fails_first)
        for each in workload(at.ticks)
        for fire_ms in each.fire_times(since_ms, until_ms)
    ]
    rows = [
        Row(row.id, row.schedule_name, _ms(row.fire_time), row.state, row.reason, _ms(row.coalesced_into))
        for row in at.query(
            "SELECT id, schedule_name, fire_time, state, reason, coalesced_into FROM cronq_job"
        )
    ]
    attempts = [
        AttemptRow(row.job_id, row.number, row.outcome)
        for row in at.query("SELECT job_id, number, outcome FROM cronq_attempt")
    ]
    at.watch()
    return History(
        lock_s=LOCK_S,
        lease_s=LEASE_S,
        expected=expected,
        demanded=injector.demanded,
        lines=[line for line in journal.read(at.journal) if line.fire_ms < until_ms],
        rows=[row for row in rows if row.fire_ms is None or row.fire_ms < until_ms],
        attempts=attempts,
        faults=injector.faults,
        ended=[*at.ended, *at.children_that_ended()],
    )


def _ms(moment: datetime | str | None) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def stories(run: Run, most: int = 5) -> Sequence[str]:
    """Return the violations as lines to read."""
    return [
        f"{kind} x{len(found)}: {story}"
        for kind, found in sorted(run.verdict.violations.items())
        for story in found[:most]
    ]
