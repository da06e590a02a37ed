"""Runs one kind of measurement several times, both sides in turn, and makes one result of it."""

from types import ModuleType
from typing import Any

from benchmarks import burst, dynamic, handover, idle, steady
from benchmarks.figures import combine, ratio
from benchmarks.options import Options
from benchmarks.stage import Stage, load

MODES: dict[str, ModuleType] = {
    "burst": burst,
    "steady": steady,
    "idle": idle,
    "dynamic": dynamic,
    "handover": handover,
}


def run_beat(mode: str, options: Options) -> dict[str, Any]:
    """Measure `mode`; the result is what the JSON line says."""
    kind = MODES[mode]
    before = load()
    against = options.redbeat and hasattr(kind, "redbeat")
    cronq_runs, redbeat_runs = [], []
    with Stage(options.broker, options.database) as stage:
        if hasattr(kind, "prepare_cronq"):
            kind.prepare_cronq(stage, options)
        for _ in range(options.reps):
            cronq_runs.append(kind.cronq(stage, options))
            if against and not hasattr(kind, "prepare_redbeat"):
                redbeat_runs.append(kind.redbeat(stage, options))
        if against and hasattr(kind, "prepare_redbeat"):
            kind.prepare_redbeat(stage, options)
            redbeat_runs = [kind.redbeat(stage, options) for _ in range(options.reps)]
    result: dict[str, Any] = {
        "bench": f"beat-{mode}",
        "n": options.n,
        "broker": options.broker,
        "database": options.database,
        "reps": options.reps,
        **combine(cronq_runs),
        "redbeat": combine(redbeat_runs) if redbeat_runs else None,
        "load_before": before,
        "load_after": load(),
        "runs": cronq_runs,
    }
    compared = kind.COMPARED
    theirs = result["redbeat"] or {}
    result["ratio"] = ratio(theirs.get(compared), result.get(compared))
    result["bars"] = [
        bar.judge(result.get(bar.figure)) for bar in kind.bars(options) if against or bar.figure != "ratio"
    ]
    return result
