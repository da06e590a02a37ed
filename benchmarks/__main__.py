"""Command line of the benchmarks: `python -m benchmarks beat|worker|fan-out|all`, see docs/benchmarks/."""

import argparse
import gc
import json
import sys
from typing import Any

from benchmarks.options import Options

DEFAULT_N = {"burst": 10_000, "steady": 1_000, "idle": 1_000_000, "dynamic": 10_000, "handover": 10_000}


def main() -> None:
    """Run what the arguments say; the last line is JSON."""
    # The observer looking through its hundred thousand messages would count as the lateness of the observed.
    gc.disable()
    arguments = _parser().parse_args()
    if arguments.bench == "all":
        from benchmarks.everything import run_all  # noqa: PLC0415 - only what is asked for

        sys.exit(0 if run_all(quick=arguments.quick) else 1)
    options = _options(arguments)
    if arguments.bench == "beat":
        from benchmarks.runner import run_beat  # noqa: PLC0415

        result = run_beat(arguments.mode, options)
    elif arguments.bench == "followers":
        from benchmarks.followers import run_followers  # noqa: PLC0415

        result = run_followers(options)
    elif arguments.bench == "fan-out":
        from benchmarks.fan_out import run_fan_out  # noqa: PLC0415

        result = run_fan_out(options)
    else:
        from benchmarks.worker import run_worker  # noqa: PLC0415

        result = run_worker(options)
    if not arguments.json:
        print(_lines(result))
    print(json.dumps(result))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    benches = parser.add_subparsers(dest="bench", required=True)
    beat = benches.add_parser("beat", help="how late, how regular, how heavy is a beat")
    beat.add_argument("--mode", choices=sorted(DEFAULT_N), default="burst")
    beat.add_argument("--no-redbeat", action="store_true", help="measure cronq only")
    worker = benches.add_parser("worker", help="what cronq costs a worker")
    worker.add_argument("--pool", choices=("prefork", "threads", "solo"), default="prefork")
    worker.add_argument("--concurrency", type=int, default=2)
    worker.add_argument("--prefetch", type=int, default=4, help="Celery's prefetch multiplier")
    worker.add_argument("--events", action="store_true", help="both sides send task events")
    followers = benches.add_parser("followers", help="when a thousand clients know of a change")
    fan_out = benches.add_parser("fan-out", help="one fire time of very many items")
    for each in (beat, worker, followers, fan_out):
        each.add_argument("--n", type=int, help="schedules, or jobs")
        each.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
        each.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
        each.add_argument("--reps", type=int, default=3)
        each.add_argument("--seconds", type=float, default=60.0, help="how long steady and idle watch")
        each.add_argument("--timers", action="store_true", help="also say where the time goes")
        each.add_argument("--json", action="store_true", help="print the JSON line only")
    everything = benches.add_parser("all", help="run them all and print a table")
    everything.add_argument("--quick", action="store_true", help="once each, and smaller")
    return parser


def _options(arguments: argparse.Namespace) -> Options:
    if arguments.bench == "fan-out":
        return Options(n=arguments.n or 1_000_000, broker=arguments.broker, database=arguments.database)
    is_worker = arguments.bench == "worker"
    if arguments.bench == "followers":
        given = {name: getattr(arguments, name) for name in ("database", "reps", "seconds")}
        return Options(n=arguments.n or 1_000, **given)
    common: dict[str, Any] = {
        name: getattr(arguments, name) for name in ("broker", "database", "reps", "seconds", "timers")
    }
    if is_worker:
        names = ("pool", "concurrency", "prefetch", "events")
        common |= {name: getattr(arguments, name) for name in names}
        return Options(n=arguments.n or 10_000, **common)
    return Options(n=arguments.n or DEFAULT_N[arguments.mode], redbeat=not arguments.no_redbeat, **common)


def _lines(result: dict[str, Any]) -> str:
    lines = [f"{name:24} {value}" for name, value in result.items() if name not in ("bars", "runs")]
    lines += [
        f"{'holds' if bar['holds'] else 'FALLS SHORT':12} {bar['figure']} {bar['bar']}: {bar['measured']}"
        for bar in result.get("bars", ())
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
