"""How fast is the next fire time? cronq against croniter and cronsim, as ratios measured in one run.

    python -m benchmarks.timing [--json]

Each figure is processor time, the best of several rounds, the libraries taking turns within a round, so that
a busy machine does not favour one. The zone has DST. "parse next" builds a new object from the text and asks
once; "cold" forgets every remembered field and month before that.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from cronq.timing import Cron
from cronq.timing.days import day_rule
from cronq.timing.fields import parse_field
from cronq.timing.wall import minutes_of_day

ZONE = "America/New_York"
START = datetime(2026, 6, 17, 12, 3, 21, tzinfo=UTC)
EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "30 2 * * *",
    "0 9-17 * * 1-5",
    "0 0 1 * *",
    "0 0 29 2 *",
    "0 0 * * SAT#2",
    "0 * * * *",
    "15,45 8-18 * * *",
    "0 6 * * MON",
    "30 4 1,15 * 5",
    "0 0 1 1,7 *",
)
ROUNDS = 7
CALLS = 1000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--json", action="store_true")
    as_json = arguments.parse_args().json
    rows = [measure(expression) for expression in EXPRESSIONS]
    ratios = {
        name: round(statistics.median(row[name] for row in rows), 1) for name in rows[0] if "_vs_" in name
    }
    result = {
        "python": platform.python_version(),
        "zone": ZONE,
        "rows": rows,
        "median": ratios,
        "targets": {"next_vs_croniter": 10, "next_vs_cronsim": 2, "parse_next_vs_croniter": 5},
    }
    print(json.dumps(result, indent=1) if as_json else table(result))


def measure(expression: str) -> dict[str, Any]:
    """Return microseconds per call and ratios for one expression."""
    local = START.astimezone(ZoneInfo(ZONE))
    timing = Cron(expression, ZONE)
    iterator = croniter(expression, local)
    took = best(
        {
            "next": lambda: timing.next(START),
            "next_croniter": lambda: iterator.get_next(datetime, start_time=local, update_current=False),
            "next_cronsim": lambda: next(CronSim(expression, local)),
            "construct_cronsim": lambda: CronSim(expression, local),
            "parse_next": lambda: Cron(expression, ZONE).next(START),
            "parse_next_cold": lambda: cold(expression),
            "parse_next_croniter": lambda: croniter(expression, local).get_next(datetime),
        }
    )
    # A CronSim cannot be moved, so its search is what remains of construction and search.
    took["next_cronsim"] -= took["construct_cronsim"]
    row: dict[str, Any] = {"expression": expression, **{name: round(each, 2) for name, each in took.items()}}
    row["next_vs_croniter"] = round(took["next_croniter"] / took["next"], 1)
    row["next_vs_cronsim"] = round(took["next_cronsim"] / took["next"], 1)
    row["parse_next_vs_croniter"] = round(took["parse_next_croniter"] / took["parse_next"], 1)
    row["parse_next_cold_vs_croniter"] = round(took["parse_next_croniter"] / took["parse_next_cold"], 1)
    return row


def cold(expression: str) -> datetime | None:
    """Parse with nothing remembered: not a field, not a month."""
    parse_field.cache_clear()
    minutes_of_day.cache_clear()
    day_rule.cache_clear()
    return Cron(expression, ZONE).next(START)


def best(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the microseconds of each call: the best round of several, taking turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.process_time()
            for _ in range(CALLS):
                call()
            found[name] = min(found[name], (time.process_time() - began) / CALLS * 1e6)
    return found


def table(result: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    names = ("next", "next_vs_croniter", "next_vs_cronsim", "parse_next", "parse_next_vs_croniter",
             "parse_next_cold", "parse_next_cold_vs_croniter")  # fmt: skip
    lines = [
        f"| expression | {' | '.join(name.replace('_', ' ') for name in names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    lines += [
        f"| `{row['expression']}` | " + " | ".join(str(row[name]) for name in names) + " |"
        for row in result["rows"]
    ]
    medians = [str(round(result["median"][name], 1)) if name in result["median"] else "" for name in names]
    return "\n".join([*lines, f"| **median** | {' | '.join(medians)} |"])


if __name__ == "__main__":
    main()
