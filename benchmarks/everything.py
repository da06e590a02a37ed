"""Runs every benchmark, and prints one table of figures against bars."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.options import Options
from benchmarks.runner import run_beat
from benchmarks.worker import run_worker

Run = tuple[str, Callable[[], dict[str, Any]]]


def run_all(*, quick: bool) -> bool:
    """Run them one after the other; return whether every bar holds."""
    rows: list[tuple[str, dict[str, Any]]] = []
    results = []
    for title, measure in _plan(reps=1 if quick else 3, quick=quick):
        print(f"… {title}", flush=True)
        result = measure()
        results.append(result)
        rows += [(title, bar) for bar in result["bars"]]
    print(table(rows))
    print(json.dumps({"bench": "all", "quick": quick, "results": results}))
    return all(bar["holds"] for _title, bar in rows)


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """Return the figures against their bars as Markdown."""
    lines = ["| benchmark | figure | bar | measured | |", "|---|---|---|---|---|"]
    lines += [
        f"| {title} | `{bar['figure']}` | {bar['bar']} | {bar['measured']} "
        f"| {'holds' if bar['holds'] else '**falls short**'} |"
        for title, bar in rows
    ]
    return "\n".join(lines)


def _plan(*, reps: int, quick: bool) -> Iterator[Run]:
    for database in ("sqlite", "postgresql"):
        yield from _beats(database, reps, quick=quick)
        for broker in ("redis", "rabbitmq"):
            options = Options(n=3_000 if quick else 10_000, broker=broker, database=database, reps=reps)
            yield f"worker, {broker}, {database}", _worker(options)


def _beats(database: str, reps: int, *, quick: bool) -> Iterator[Run]:
    stored = 20_000 if quick else 1_000_000
    seconds = 10.0 if quick else 60.0
    for mode, options in (
        ("burst", Options(n=10_000, database=database, reps=reps)),
        ("burst", Options(n=100_000, database=database, reps=reps, redbeat=False)),
        ("burst", Options(n=10_000, broker="rabbitmq", database=database, reps=reps)),
        ("steady", Options(n=1_000, database=database, reps=reps, seconds=seconds)),
        ("idle", Options(n=stored, database=database, reps=reps, seconds=seconds)),
        ("dynamic", Options(n=10_000, database=database, reps=reps)),
        ("handover", Options(n=10_000, database=database, reps=1)),
        ("handover", Options(n=10_000, broker="rabbitmq", database=database, reps=1)),
    ):
        if quick and options.n == 100_000:
            continue
        yield f"{mode}, {options.n:,}, {options.broker}, {database}", _beat(mode, options)


def _beat(mode: str, options: Options) -> Callable[[], dict[str, Any]]:
    return lambda: run_beat(mode, options)


def _worker(options: Options) -> Callable[[], dict[str, Any]]:
    return lambda: run_worker(options)
