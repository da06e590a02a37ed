"""`make simulate`: look for a seed that breaks cronq; the last line is JSON.

python -m tests.simulation [--schedules 10000] [--seed 1] [--processes 2] [--trace]
"""

import argparse
import gc
import json
import multiprocessing
import os
import sys
import time
from collections import Counter

from .patching import on_stage
from .run import EPISODES, Outcome, simulate

SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, default=10_000, help="how many schedules of faults")
    parser.add_argument(
        "--seed", type=int, default=1, help=f"of the first life; each has {EPISODES} schedules"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--trace", action="store_true", help="live one life, and print what happens in it")
    asked = parser.parse_args()
    if asked.trace:
        return _trace(asked.seed)
    lives = -(-asked.schedules // EPISODES)
    seeds = range(asked.seed, asked.seed + lives)
    began, counts, faults, lived_s, failed = time.monotonic(), Counter[str](), 0, 0.0, []
    # What is there before the first life stays: looking it through again and again took a tenth of the time.
    with multiprocessing.Pool(asked.processes, initializer=gc.freeze) as pool:
        for outcome in pool.imap(_live, seeds, chunksize=4):
            counts += outcome.counts
            faults += len(outcome.faults)
            lived_s += outcome.lived_s
            if outcome.violations:
                failed.append(outcome.seed)
                if len(failed) <= SHOWN:
                    print(f"seed {outcome.seed}:", *outcome.violations[:SHOWN], sep="\n    ")
    took_s = time.monotonic() - began
    report = {
        "first_seed": asked.seed,
        "schedules": lives * EPISODES,
        "faults": faults,
        "failed_seeds": failed,
        "lived_h": round(lived_s / 3600, 2),
        "took_s": round(took_s, 1),
        "processes": asked.processes,
        "schedules_per_minute": round(lives * EPISODES / took_s * 60),
        "coverage": dict(sorted(counts.items())),
    }
    print(json.dumps(report))
    return 1 if failed else 0


def _live(seed: int) -> Outcome:
    with on_stage():
        return simulate(seed)


def _trace(seed: int) -> int:
    with on_stage():
        outcome = simulate(seed, trace=True)
    print(*outcome.trace, "", *outcome.faults, "", *outcome.violations, sep="\n")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
