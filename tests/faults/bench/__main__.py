"""Command line of the fault bench: `python -m tests.faults.bench faults --seed 1`, see CONTRIBUTING.md."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tests.faults.bench import mutation, report, rivals
from tests.faults.bench.catalogue import KINDS
from tests.faults.bench.measures import recovery, worst_lateness
from tests.faults.bench.mutants import MUTANTS
from tests.faults.bench.plans import TICKS, Plan, every_fault_once, sample, soak
from tests.faults.bench.run import Run, Setup, run, stories
from tests.faults.bench.summary import clean, summary, void


def main() -> int:
    """Run what the arguments say; the last line is JSON. Exit code 1: a violation; 2: it proves nothing."""
    args = _parser().parse_args()
    match args.what:
        case "mutants":
            return _mutants(args)
        case "beside":
            print(json.dumps([asdict(each) for each in rivals.compare(args.seed, _say)]))
            return 0
        case "report":
            return _report(args)
        case _:
            return _judged(_run_all(_plans(args), keep=args.keep), needs_coverage=args.what != "only")


def _run_all(plans: Iterable[Plan], *, keep: bool = False) -> list[Run]:
    runs = []
    for setup, kinds in plans:
        _say(f"on {setup.title}, seed {setup.seed}")
        runs.append(run(setup, kinds, _say, keep=keep))
        _tell(runs[-1])
    return runs


def _judged(runs: list[Run], *, needs_coverage: bool) -> int:
    figures = summary(runs)
    empty = void(figures) if needs_coverage else []
    if empty:
        print("this run proves nothing: no " + ", no ".join(empty))
    print(json.dumps(figures))
    return 1 if not clean(runs) else 2 if empty else 0


def _mutants(args: argparse.Namespace) -> int:
    caught = mutation.run_all(args.names or MUTANTS, args.seed, _say)
    survived = [name for name, noticed in caught.items() if not noticed]
    print(json.dumps({"mutants": len(caught), "noticed": len(caught) - len(survived), "survived": survived}))
    return 1 if survived else 0


def _report(args: argparse.Namespace) -> int:
    load = os.getloadavg()[0]
    runs = _run_all(every_fault_once(args.seed))
    caught = mutation.run_all(MUTANTS, args.seed, _say)
    _say(str(report.write(args.folder, runs, rivals.compare(args.seed, _say), caught, load)))
    return _judged(runs, needs_coverage=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.bench")
    whats = parser.add_subparsers(dest="what", required=True)
    whats.add_parser("faults", help="every fault once, on both brokers and both databases: ten minutes")
    whats.add_parser("sample", help="the faults that CI has the time for")
    whats.add_parser("soak", help="random faults").add_argument("--hours", type=float, default=1.0)
    mutants = whats.add_parser("mutants", help="show that the checker notices a cronq without a guarantee")
    mutants.add_argument("names", nargs="*", metavar="MUTANT", choices=[[], *MUTANTS])
    whats.add_parser("beside", help="the same faults done to Celery's own beat, to RedBeat and to cronq")
    whole = whats.add_parser("report", help="all of that, written down as a document with plots")
    whole.add_argument("folder", type=Path)
    only = whats.add_parser("only", help="the faults that are named")
    only.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    only.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    only.add_argument("kinds", nargs="+", metavar="KIND", choices=sorted(KINDS))
    for each in whats.choices.values():
        each.add_argument("--seed", type=int, default=1)
        each.add_argument("--keep", action="store_true", help="keep the journal and the logs")
    return parser


def _plans(args: argparse.Namespace) -> Iterable[Plan]:
    match args.what:
        case "faults":
            return every_fault_once(args.seed)
        case "sample":
            return sample(args.seed)
        case "soak":
            return soak(args.seed, args.hours)
        case _:
            return [(Setup(args.broker, args.database, args.seed, TICKS), iter(args.kinds))]


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


def _tell(run: Run) -> None:
    for fault in run.history.faults:
        print(
            f"{fault.start - run.began:7.1f} s {fault.end - fault.start:5.1f} s"
            f"  worst {worst_lateness(run.history, run.verdict, fault):5.2f} s"
            f"  over {recovery(run.history, run.verdict, fault):5.2f} s after its end  {fault.kind}"
        )
    print("dispositions:", dict(run.verdict.dispositions))
    print(*stories(run), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
