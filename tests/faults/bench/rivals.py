"""The same faults done to Celery's own beat and to RedBeat.

Their interval schedules have no fixed fire times, so runs are counted: one a second is expected of each
schedule. Two messages of one schedule within a third of a second are a double.
"""

import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tests.faults.bench import journal
from tests.faults.bench.catalogue import KINDS
from tests.faults.bench.injector import Injector
from tests.faults.bench.installation import Installation
from tests.faults.bench.journal import Line
from tests.faults.bench.plans import TICKS
from tests.faults.bench.run import QUIET_S, REST_S, Run, Setup, run

FAULTS = (
    "leader killed", "worker killed", "leader frozen", "pool process killed", "redis killed", "worker frozen",
    "redis emptied", "leader told to stop", "redis frozen", "redis killed and emptied",
)  # fmt: skip
DOUBLED_S = 0.3
SYSTEMS = ("celery beat", "redbeat", "cronq")


class Rival(Installation):
    """Celery's own beat, or two of RedBeat's, and two workers, on Redis."""

    def __init__(self, folder: Path, system: str, *, ticks: int) -> None:
        super().__init__(folder, "redis", "none", ticks=ticks)
        self.beats = ("b1", "b2") if system == "redbeat" else ("b1",)
        self._system = system

    def _open_database(self) -> None:
        self.database_url = "sqlite://"

    def _command(self, name: str) -> tuple[str, ...]:
        app = ("-A", "tests.faults.bench.rival_app")
        if name[0] == "w":
            return (*app, *super()._command(name)[2:])
        if self._system == "redbeat":
            return (*app, "beat", "-S", "redbeat.RedBeatScheduler", "--max-interval", "1")
        return (*app, "beat", "-s", str(self.folder / "beat"), "--max-interval", "1")

    def ready(self, name: str) -> bool:
        """Tell whether it has started."""
        return (" ready." if name[0] == "w" else "beat: Starting") in self.processes[name].new_output()

    def leader(self) -> str:
        """Return the beat that sent something last."""
        sent = [line.process for line in journal.read(self.journal) if line.what == "sent"]
        return sent[-1] if sent else self.beats[0]


@dataclass(frozen=True)
class Tally:
    """What became of the runs of one system."""

    system: str
    expected: int
    missing: int
    doubled: int
    cut_off: int  #: bodies that began and never came to an end, in any attempt
    longest_gap_s: float
    ended: int  #: processes that ended although nobody killed them


def compare(seed: int, say: Callable[[str], None]) -> list[Tally]:
    """Do the same faults to all systems, one after the other."""
    return [_tally_of(system, seed, say) for system in SYSTEMS]


def _tally_of(system: str, seed: int, say: Callable[[str], None]) -> Tally:
    say(f"beside: {system}")
    if system == "cronq":
        return _tally_of_cronq(run(Setup("redis", "sqlite", seed, TICKS), FAULTS, say))
    with (
        tempfile.TemporaryDirectory(prefix="cronq-rival-") as folder,
        Rival(Path(folder), system, ticks=TICKS) as rival,
    ):
        chance = random.Random(seed)
        injector = Injector(rival, chance, say)
        injector.all_ready()
        injector.wait(QUIET_S)
        began = time.monotonic()
        for name in FAULTS:
            KINDS[name].do(injector)
            injector.settle(chance.uniform(*REST_S))
        injector.wait(QUIET_S)
        until = time.monotonic()
        injector.wait(QUIET_S)
        return tally(system, journal.read(rival.journal), began, until, len(rival.ended))


def _tally_of_cronq(result: Run) -> Tally:
    """Return what the checker found: of cronq's schedules every single fire time is known."""
    ticks = [each for each in result.history.expected if each.schedule.startswith("tick-")]
    seen = tally("cronq", result.history.lines, result.began, result.until, len(result.history.ended))
    return replace(
        seen,
        expected=len(ticks),
        missing=result.verdict.count("missing", "lost", "stuck", "failed", "wrongly skipped"),
        doubled=result.verdict.count("doubled", "doubly settled"),
    )


def tally(system: str, lines: Sequence[Line], began: float, until: float, ended: int) -> Tally:
    """Count what the journal says about the schedules of each second between two instants."""
    within = [line for line in lines if line.schedule.startswith("tick-") and began <= line.at < until]
    ran: dict[str, set[str]] = defaultdict(set)
    sent: dict[str, list[float]] = defaultdict(list)
    for line in within:
        if line.what == "start":
            ran[line.schedule].add(line.job)
        elif line.what == "sent":
            sent[line.schedule].append(line.at)
    seconds = round(until - began)
    everywhere = [*([began, *(line.at for line in within if line.what == "start"), until])]
    started = {line.job for line in lines if line.what == "start" and line.at < until}
    ended_well = {line.job for line in lines if line.what == "end"}
    return Tally(
        system,
        expected=len(ran) * seconds,
        # One more or less is the edge of the time that is looked at.
        missing=sum(max(0, seconds - len(jobs) - 1) for jobs in ran.values()),
        doubled=sum(
            later - earlier < DOUBLED_S for times in sent.values() for earlier, later in pairwise(times)
        ),
        cut_off=len(started - ended_well),
        longest_gap_s=round(max(later - earlier for earlier, later in pairwise(everywhere)), 1),
        ended=ended,
    )
