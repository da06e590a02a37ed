"""The figures of one or several runs: the line of JSON that the bench ends with."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.faults.bench.measures import coverage, handovers, quantile, rescues
from tests.faults.bench.run import Run


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what the checker found in `runs`, put together."""
    covered: Counter[str] = Counter()
    for run in runs:
        covered.update(coverage(run.history))
    handed = [s for run in runs for s in handovers(run.history, run.verdict)]
    rescued = [s for run in runs for s in rescues(run.history)]

    def count(*kinds: str) -> int:
        return sum(run.verdict.count(*kinds) for run in runs)

    return {
        "fires": sum(len(run.history.expected) for run in runs),
        "faults": sum(len(run.history.faults) for run in runs),
        "kinds": len({fault.kind for run in runs for fault in run.history.faults}),
        "doubled": count("doubled", "doubly settled", "two leaders", "unexpected"),
        "missing": count("missing", "lost", "failed", "wrongly skipped"),
        "late": count("late"),
        "stuck": count("stuck"),
        "overlaps": count("overlap"),
        "early": count("early"),
        "unexplained": count("unexplained"),
        "worst_late_s": _rounded(
            max((by for run in runs for _due, by in run.verdict.lateness), default=None)
        ),
        "handover_p99_s": _rounded(quantile(handed, 0.99)),
        "rescue_p99_s": _rounded(quantile(rescued, 0.99)),
        "coverage": dict(covered),
    }


def void(figures: dict[str, Any]) -> list[str]:
    """Return the coverage counters that are zero: a run with one proves nothing."""
    return [name for name, count in figures["coverage"].items() if count == 0]


def clean(runs: Sequence[Run]) -> bool:
    """Tell whether nothing at all was found."""
    return all(run.verdict.clean for run in runs)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
