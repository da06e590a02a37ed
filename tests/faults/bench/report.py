"""Writes what a run of the bench found as a document with plots."""

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.faults.bench.measures import handovers, quantile, recovery, rescues, worst_lateness
from tests.faults.bench.mutants import MUTANTS
from tests.faults.bench.plot import draw
from tests.faults.bench.rivals import FAULTS, Tally
from tests.faults.bench.run import Run, stories
from tests.faults.bench.summary import summary
from tests.faults.bench.timings import LEASE_S, LOCK_S, REPUBLISH_S

NAME = "fault-report"
CALM_AFTER_S = 5.0
COUNTS = ("doubled", "missing", "late", "stuck", "overlaps", "early", "unexplained")
INTRODUCTION = """# Fault report

Made by `make fault-report`. Two beats and two workers (one prefork, one of threads) run as processes on
private servers, {fires} fire times fell due, and {faults} faults of {kinds} kinds were done to them. A
checker that knows nothing of cronq but the rows of two tables judges every fire time: it computes them by
arithmetic and with croniter and cronsim, and it learns what ran from what the bodies themselves appended
to a file.

The times are short, so that each fault outlives them: lock {lock:g} s, lease {lease:g} s, lost messages
after {republish:g} s. Taken on {machine}; load of the machine when it began: {load}. Everything ran
beside the servers, the links and the injector itself, and beside whatever else the machine did, which
makes lateness worse than it is alone.
"""
AFTER = """
A worker that dies or freezes past its lease may have done half of its work: its job runs again elsewhere,
and is settled once. Such second runs are not counted as doubled; any other is.
"""
BESIDE = """## The same done to others

On Redis, one after the other: {faults}. Celery's own beat is one process (two would send everything
twice), started again at once when it ends; RedBeat has two, and a lock of 5 s. The workers are Celery's,
with its defaults.
"""
LIMITS = """
## What this does not show

One machine: no disk that loses what it acknowledged, no cluster of RabbitMQ or PostgreSQL. The network is cut
in a proxy, in one direction or in both, not in the kernel. PostgreSQL's disk is filled where the bench may
mount one, as root. On SQLite a process that is frozen inside a transaction stops everybody until it wakes;
such hand-overs are not counted in the quantiles above. A wrong clock of one process is done to PostgreSQL
installations only: SQLite has no clock but that of the process that asks.
"""


def write(
    folder: Path, runs: Sequence[Run], tallies: Iterable[Tally], mutants: Mapping[str, bool], load: float
) -> Path:
    """Write the report and its plots into `folder`; return the report's path."""
    figures = summary(runs)
    lines = [
        INTRODUCTION.format(
            **figures, lock=LOCK_S, lease=LEASE_S, republish=REPUBLISH_S, load=f"{load:.1f}",
            machine=f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
            + time.strftime("%Y-%m-%d", time.gmtime()),
        ),
        *_found(runs, figures),
        AFTER,
    ]  # fmt: skip
    for number, run in enumerate(runs, start=1):
        plot = f"{NAME}-{number}.svg"
        (folder / plot).write_text(draw(run))
        lines += [f"## {number}. On {run.setup.title}\n", f"![Lateness over time]({plot})\n", *_faults(run)]
    lines += [*_beside(tallies), *_mutants(mutants), LIMITS]
    lines += ["## The line that the bench ended with\n", f"```json\n{json.dumps(figures)}\n```"]
    path = folder / f"{NAME}.md"
    path.write_text("\n".join(lines) + "\n")
    return path


def _found(runs: Sequence[Run], figures: Mapping[str, object]) -> list[str]:
    lines = ["## What was found\n", "| | " + " | ".join(COUNTS) + " |", "|---" * (len(COUNTS) + 1) + "|"]
    lines.append("| fire times and processes | " + " | ".join(str(figures[name]) for name in COUNTS) + " |\n")
    lines += [f"- {story}" for run in runs for story in stories(run)]
    everything = [by for run in runs for _due, by in run.verdict.lateness]
    calm = [by for run in runs for due, by in run.verdict.lateness if _is_calm(run, due)]
    handed = [s for run in runs for s in handovers(run.history, run.verdict)]
    rescued = [s for run in runs for s in rescues(run.history)]
    lines += [
        "\n| seconds | n | p50 | p90 | p99 | worst |", "|---|---|---|---|---|---|",
        _row("a body starts after its fire time", everything),
        _row(f"the same, {CALM_AFTER_S:g} s and more after a fault", calm),
        _row("from the loss of a leader to the next fire", handed),
        _row("from the loss of a worker to the job's next start", rescued),
    ]  # fmt: skip
    return lines


def _is_calm(run: Run, due: float) -> bool:
    return not any(fault.start <= due <= fault.end + CALM_AFTER_S for fault in run.history.faults)


def _row(what: str, values: Sequence[float]) -> str:
    parts = [quantile(values, part) for part in (0.5, 0.9, 0.99, 1.0)]
    shown = " | ".join("-" if part is None else f"{max(part, 0.0):.3f}" for part in parts)
    return f"| {what} | {len(values)} | {shown} |"


def _faults(run: Run) -> list[str]:
    lines = [
        "| | fault | at | lasted | worst lateness | over, after its end |",
        "|---|---|---|---|---|---|",
    ]
    for number, fault in enumerate(run.history.faults, start=1):
        held = " (held SQLite's write lock)" if fault.held_write_lock else ""
        lines.append(
            f"| {number} | {fault.kind}{held} | {fault.start - run.began:.0f} s"
            f" | {fault.end - fault.start:.1f} s"
            f" | {worst_lateness(run.history, run.verdict, fault):.2f} s"
            f" | {recovery(run.history, run.verdict, fault):.2f} s |"
        )
    return [*lines, ""]


def _beside(tallies: Iterable[Tally]) -> list[str]:
    lines = [
        BESIDE.format(faults=", ".join(FAULTS)),
        "| | expected | missing | doubled | begun, never finished | longest silence | ended by themselves |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.system} | {each.expected} | {each.missing} | {each.doubled} | {each.cut_off}"
        f" | {each.longest_gap_s} s | {each.ended} |"
        for each in tallies
    ]
    return [*lines, ""]


def _mutants(caught: Mapping[str, bool]) -> list[str]:
    lines = [
        "## Whether the checker would notice\n",
        "The same bench on a cronq that lacks one of its guarantees:\n",
        "| without | found as | noticed |",
        "|---|---|---|",
    ]
    for name, noticed in caught.items():
        doc = (MUTANTS[name].patch.__doc__ or "").strip()
        as_ = ", ".join(sorted(MUTANTS[name].caught_as))
        lines.append(f"| {name}: {doc} | {as_} | {'yes' if noticed else 'NO'} |")
    return lines
