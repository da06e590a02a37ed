"""The judge: from what was expected, done, recorded and broken, what went wrong.

It knows the rows of two tables and nothing else of cronq. A fault excuses lateness, and the loss of what the
hurt processes were running; nothing ever excuses a doubled, missing, early, overlapping or stuck job.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.faults.bench.history import Demanded, Expected, Fault, History, Row
from tests.faults.bench.journal import Line

EARLY_S = 0.05
ON_TIME_S = 3.0
"""How late a body may start with nothing broken: the machine has two cores, and many processes."""
IN_TURN_S = 6.0
"""The same where a fire time waits for the one before it."""
GOING_ON_S = 1.0
"""By how much the end of a body and the leader's knowledge of it may differ."""
COALESCES_AFTER_S = 9.0
TOGETHER_S, ALTERNATIONS = 3.0, 4
"""Two beats that take turns this often within that time lead at the same time."""
ENDS = frozenset({"COMPLETED", "FAILED", "TIMED_OUT", "SKIPPED", "CANCELLED"})
KINDS = (
    "doubled", "missing", "lost", "stuck", "late", "early", "overlap", "wrongly skipped", "doubly settled",
    "failed", "unexpected", "two leaders", "unexplained",
)  # fmt: skip


@dataclass(slots=True)
class Run:
    """One try of a body."""

    line: Line
    end: float | None = None


@dataclass(slots=True)
class Verdict:
    """What was found: violations with their stories, and counts of what was checked."""

    violations: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    dispositions: Counter[str] = field(default_factory=Counter)
    lateness: list[tuple[float, float]] = field(default_factory=list)  #: (when it was due, by how much)
    first_start: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, kind: str, story: str) -> None:
        assert kind in KINDS, kind
        self.violations[kind].append(story)

    def count(self, *kinds: str) -> int:
        return sum(len(self.violations[kind]) for kind in kinds if kind in self.violations)

    @property
    def clean(self) -> bool:
        return not any(self.violations.values())


def check(history: History) -> Verdict:
    """Judge one run."""
    verdict = Verdict()
    runs = runs_of(history.lines)
    rows: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in history.rows:
        if row.schedule is not None and row.fire_ms is not None:
            rows[row.schedule, row.fire_ms].append(row)
    by_schedule = _by_fire_time(runs)
    keys = {(each.schedule, each.fire_ms) for each in history.expected}
    first_ms = min((each.fire_ms for each in history.expected), default=0)
    for each in history.expected:
        key = (each.schedule, each.fire_ms)
        _judge_fire(verdict, history, each, rows.get(key, []), by_schedule[each.schedule])
    for schedule, fires in by_schedule.items():
        for fire_ms in fires:
            if (schedule, fire_ms) not in keys and fire_ms >= first_ms:
                verdict.add("unexpected", f"{schedule} ran at {fire_ms}, when it was not due")
    _judge_demanded(verdict, history, runs)
    _judge_runs(verdict, history, runs)
    _judge_overlaps(verdict, history, by_schedule)
    _judge_settlements(verdict, history)
    _judge_leaders(verdict, history)
    for story in history.ended:
        verdict.add("unexplained", story)
    return verdict


def runs_of(lines: Iterable[Line]) -> dict[str, list[Run]]:
    """Return each job's runs, in the order of their starts."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for line in lines:
        if line.what == "start":
            runs[line.job].append(Run(line))
        elif line.what == "end":
            mine = [
                run
                for run in runs.get(line.job, ())
                if run.line.pid == line.pid and run.line.attempt == line.attempt and run.end is None
            ]
            if mine:
                mine[0].end = line.at
    return runs


def hurt_by(history: History, process: str, start: float, end: float) -> Fault | None:
    """Return the fault that may have cost `process` what it ran between the two instants."""
    for fault in history.faults:
        if process in fault.hurt and fault.start <= end and fault.end >= start:
            return fault
    return None


def deadline(faults: Sequence[Fault], due: float, allowed_s: float) -> float:
    """Return the latest instant at which what is `due` then may start.

    It may wait for as long as something is broken, and once for as long as the recovery from it may take:
    faults that follow each other closely do not put it off for ever.
    """
    broken_until, broken_s, recover_s = due, 0.0, 0.0
    for fault in faults:  # in the order of their starts: each may push it into the next one
        if fault.start <= due + allowed_s + broken_s + recover_s and fault.until >= due:
            broken_s += max(0.0, fault.end - max(fault.start, broken_until))
            broken_until = max(broken_until, fault.end)
            recover_s = max(recover_s, fault.recover_s)
    return due + allowed_s + broken_s + recover_s


def _by_fire_time(runs: dict[str, list[Run]]) -> dict[str, dict[int, list[Run]]]:
    found: dict[str, dict[int, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for several in runs.values():
        for run in several:
            if run.line.fire_ms >= 0:
                found[run.line.schedule][run.line.fire_ms].append(run)
    return found


def _judge_fire(
    verdict: Verdict,
    history: History,
    each: Expected,
    rows: Sequence[Row],
    fires: dict[int, list[Run]],
) -> None:
    what = f"{each.schedule} at {each.fire_ms}"
    mine = fires.get(each.fire_ms, [])
    if mine:
        start = min(run.line.at for run in mine)
        verdict.first_start[each.schedule, each.fire_ms] = start
        verdict.lateness.append((each.at, start - each.at))
        _judge_moment(verdict, history, each, start)
    if not rows:
        verdict.add("missing", f"{what} has no disposition" + (", and ran" if mine else ""))
        return
    if len(rows) > 1 or len({run.line.job for run in mine}) > 1:
        verdict.add("doubled", f"{what} has {len(rows)} jobs: {', '.join(row.job for row in rows)}")
    for row in rows:
        verdict.dispositions[row.state if row.reason is None else row.reason] += 1
        if row.state == "SKIPPED":
            _judge_skip(verdict, history, each, row, fires)
        else:
            _judge_end(verdict, what, row, [run for run in mine if run.line.job == row.job])


def _judge_moment(verdict: Verdict, history: History, each: Expected, start: float) -> None:
    allowed = IN_TURN_S if each.overlap == "queue" else ON_TIME_S
    what = f"{each.schedule} at {each.fire_ms}"
    if start < each.at - EARLY_S:
        verdict.add("early", f"{what} ran {each.at - start:.3f} s early")
    latest = deadline(history.faults, each.at, allowed)
    if start > latest:
        verdict.add(
            "late", f"{what} ran {start - each.at:.1f} s late, {start - latest:.1f} s past its deadline"
        )


def _judge_end(verdict: Verdict, what: str, row: Row, mine: Sequence[Run], *, poison: bool = False) -> None:
    if row.state not in ENDS:
        verdict.add("stuck", f"{what} ({row.job}) is still {row.state}")
    elif row.state == "COMPLETED" and not any(run.end is not None for run in mine):
        verdict.add("lost", f"{what} ({row.job}) is COMPLETED, and no body ran to its end")
    elif row.state != ("FAILED" if poison else "COMPLETED"):
        verdict.add("failed", f"{what} ({row.job}) ended {row.state}")


def _judge_skip(
    verdict: Verdict, history: History, each: Expected, row: Row, fires: dict[int, list[Run]]
) -> None:
    if each.fire_ms in fires:
        verdict.add("wrongly skipped", f"{each.schedule} at {each.fire_ms} is {row.reason}, and ran")
        return
    allowed = False
    if row.reason == "overlap":
        allowed = each.overlap == "skip" and any(
            _was_going_on(history, several, each.at)
            for fire_ms, several in fires.items()
            if each.fire_ms - 60_000 <= fire_ms < each.fire_ms
        )
    elif row.reason == "coalesced":
        hidden = any(f.start <= each.at and f.until >= each.at + COALESCES_AFTER_S for f in history.faults)
        allowed = each.catch_up == "latest" and hidden and row.into_ms in fires
    if not allowed:
        verdict.add("wrongly skipped", f"{each.schedule} at {each.fire_ms} is {row.reason}, for no reason")


def _was_going_on(history: History, several: Sequence[Run], at: float) -> bool:
    """Tell whether a job of these runs was at work at that instant, or its end could not be recorded yet."""
    if any(run.end is None for run in several[-1:]):
        return True
    end = max(run.end or 0.0 for run in several)
    recorded = max(
        (f.end + GOING_ON_S for f in history.faults if f.start - GOING_ON_S <= end <= f.end), default=end
    )
    return recorded >= at - GOING_ON_S


def _judge_demanded(verdict: Verdict, history: History, runs: dict[str, list[Run]]) -> None:
    rows = {row.job: row for row in history.rows}
    demanded: Demanded
    for demanded in history.demanded:
        what = "a poison job" if demanded.poison else "a demanded job"
        row = rows.get(demanded.job)
        if row is None:
            verdict.add("missing", f"{what}, {demanded.job}, is not in the table")
            continue
        mine = runs.get(demanded.job, [])
        _judge_end(verdict, what, row, mine, poison=demanded.poison)
        if mine and mine[0].line.at > deadline(history.faults, demanded.at, ON_TIME_S):
            verdict.add("late", f"{what}, {demanded.job}, ran {mine[0].line.at - demanded.at:.1f} s late")


def _judge_runs(verdict: Verdict, history: History, runs: dict[str, list[Run]]) -> None:
    """A second run of a job needs a reason: the first one's process was hurt, or the body asked for it."""
    poison = {each.job for each in history.demanded if each.poison}
    asks = {(each.schedule, each.fire_ms) for each in history.expected if each.fails_first}
    for job, several in runs.items():
        for first, second in pairwise(several):
            line = first.line
            asked = (line.schedule, line.fire_ms) in asks and line.attempt == 1 and first.end is not None
            asked = asked and second.line.attempt > line.attempt
            hurt = hurt_by(history, line.process, line.at, second.line.at)
            if not asked and hurt is None and job not in poison and not _is_older(line, history):
                gap = second.line.at - line.at
                verdict.add(
                    "doubled", f"{line.schedule} at {line.fire_ms} ({job}) ran again after {gap:.2f} s"
                )


def _is_older(line: Line, history: History) -> bool:
    """Tell whether it is of a fire time from before those that are judged."""
    first_ms = min((each.fire_ms for each in history.expected), default=0)
    return 0 <= line.fire_ms < first_ms


def _judge_overlaps(verdict: Verdict, history: History, by_schedule: dict[str, dict[int, list[Run]]]) -> None:
    exclusive = {each.schedule for each in history.expected if each.overlap != "allow"}
    for schedule in sorted(exclusive):
        several = sorted(
            (run for fires in by_schedule[schedule].values() for run in fires), key=lambda run: run.line.at
        )
        for place, first in enumerate(several):
            until = first.end if first.end is not None else float("inf")
            for second in several[place + 1 : place + 20]:
                if second.line.at >= until - EARLY_S:
                    break
                if hurt_by(history, first.line.process, first.line.at, second.line.at) is None:
                    verdict.add(
                        "overlap",
                        f"{schedule} at {second.line.fire_ms} began while {first.line.fire_ms} went on",
                    )


def _judge_settlements(verdict: Verdict, history: History) -> None:
    ends: Counter[str] = Counter()
    for attempt in history.attempts:
        ends[attempt.job] += attempt.outcome == "COMPLETED"
    for row in history.rows:
        if ends[row.job] > 1 or (row.state == "COMPLETED") != (ends[row.job] == 1):
            verdict.add(
                "doubly settled", f"{row.job} is {row.state}, and was completed {ends[row.job]} times"
            )


def _judge_leaders(verdict: Verdict, history: History) -> None:
    """Two beats that send in turns for longer than a lock lead at the same time.

    An old leader that lost its lock, and not by its own fault, may send until it looks at it again.
    """
    sent = [line for line in history.lines if line.what == "sent"]
    turns = [later.at for earlier, later in pairwise(sent) if earlier.process != later.process]
    told = float("-inf")
    for first in turns:
        together = [turn for turn in turns if first <= turn <= first + TOGETHER_S]
        span = together[-1] - first
        if len(together) >= ALTERNATIONS and span > history.lock_s and first > told:
            verdict.add("two leaders", f"two beats took turns {len(together)} times within {span:.1f} s")
            told = first + TOGETHER_S
