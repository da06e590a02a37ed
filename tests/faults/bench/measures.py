"""What a run took: hand-overs, rescues, recoveries, and whether the faults met anything worth meeting."""

from collections.abc import Sequence
from itertools import pairwise

from tests.faults.bench.checker import Verdict, hurt_by, runs_of
from tests.faults.bench.history import Fault, History

PULSE = "pulse"
NOTICEABLE_S = 0.5


def handovers(history: History, verdict: Verdict) -> list[float]:
    """Return the seconds from each loss of a leader to the next message that somebody acted upon."""
    pulses = sorted(
        (each.at, verdict.first_start[key])
        for each in history.expected
        if each.schedule == PULSE and (key := (each.schedule, each.fire_ms)) in verdict.first_start
    )
    found = []
    for fault in history.faults:
        if fault.handover and not fault.held_write_lock:
            after = [start for due, start in pulses if due >= fault.start]
            if after:
                found.append(min(after) - fault.start)
    return found


def rescues(history: History) -> list[float]:
    """Return the seconds from each fault that cost a running body its worker to that job's next run.

    Faults of a single worker only: when a server is away, nobody can be rescued before it is back.
    """
    found = []
    for several in runs_of(history.lines).values():
        for first, second in pairwise(several):
            fault = hurt_by(history, first.line.process, first.line.at, second.line.at)
            if fault is not None and len(fault.hurt) == 1 and first.line.at <= fault.start:
                found.append(second.line.at - fault.start)
    return found


def recovery(history: History, verdict: Verdict, fault: Fault) -> float:
    """Return how many seconds after the end of `fault` something noticeably late still started."""
    late = [due + by for due, by in _during(history, verdict, fault) if by > NOTICEABLE_S]
    return max(0.0, max(late, default=fault.end) - fault.end)


def worst_lateness(history: History, verdict: Verdict, fault: Fault) -> float:
    """Return how many seconds late the latest of what fell due during `fault`, or after it, started."""
    return max((by for _due, by in _during(history, verdict, fault)), default=0.0)


def _during(history: History, verdict: Verdict, fault: Fault) -> list[tuple[float, float]]:
    """Return what fell due between the beginnings of `fault` and the next one, each with its lateness."""
    following = [other.start for other in history.faults if other.start > fault.start]
    until = min(following, default=fault.until)
    return [(due, by) for due, by in verdict.lateness if fault.start <= due < until]


def coverage(history: History) -> dict[str, int]:
    """Return how often the faults met what they were meant for; a run with a zero here proves nothing."""
    runs = runs_of(history.lines)
    live = [
        (fault, run)
        for several in runs.values()
        for run in several
        for fault in history.faults
        if run.line.process in fault.hurt
        and run.line.at < fault.start
        and (run.end is None or run.end > fault.start)
    ]
    outlived = {
        (run.line.job, fault.start)
        for fault, run in live
        if not fault.deadly and fault.end - fault.start > history.lease_s
    }
    taken = sum(line.what == "taken" for line in history.lines)
    started = sum(line.what == "start" for line in history.lines)
    return {
        "kills_of_live_tasks": sum(fault.deadly for fault, _run in live),
        "freezes_outliving_lease": len(outlived),
        "failpoints_hit": sum(fault.failpoint is not None for fault in history.faults),
        "dedup_drops": taken - started,
        "rescues": sum(attempt.outcome == "LOST" for attempt in history.attempts),
        "handovers": sum(fault.handover for fault in history.faults),
    }


def quantile(values: Sequence[float], part: float) -> float | None:
    """Return the value that `part` of the values do not exceed; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
