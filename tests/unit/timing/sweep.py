"""Compare cronq's fire times with brute force around the offset changes of all zones.

    python -m tests.unit.timing.sweep [--first 2000] [--last 2037] [--seed 1] [--zones 20] [--report PATH]

Zones whose data is the same byte for byte are swept once. Exit code 1 when anything differs.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cronq.schedule import Dst
from cronq.timing import Cron, fires_between
from cronq.timing.zones import zone_data_version, zone_names
from tests.unit.timing import truth

POLICIES = (Dst.VIXIE, Dst.SKIP, Dst.BOTH)


@dataclass
class Outcome:
    """What a sweep did and what it found."""

    zones: int = 0
    names: int = 0
    transitions: int = 0
    comparisons: int = 0
    fires: int = 0
    mismatches: list[str] = field(default_factory=list)


def distinct_zones() -> list[str]:
    """One name for each distinct set of zone data, in a stable order."""
    seen: dict[bytes, str] = {}
    for name in sorted(zone_names()):
        seen.setdefault(truth.zone_bytes(name), name)
    return sorted(seen.values())


def sweep(zones: Iterable[str], first_year: int, last_year: int, seed: int, sample: float = 1.0) -> Outcome:
    """Compare every policy around the transitions of `zones` (a random `sample` of them)."""
    outcome = Outcome()
    for name in zones:
        zone = truth.zone_info(name)
        outcome.zones += 1
        draw = random.Random(f"{seed} {name}")
        for transition in truth.transitions(zone, first_year, last_year):
            if draw.random() < sample:
                outcome.transitions += 1
                _check(name, truth.window(zone, transition), draw, outcome)
    return outcome


def _check(name: str, around: truth.Window, draw: random.Random, outcome: Outcome) -> None:
    for case in truth.some_cases(draw, around):
        for policy in POLICIES[:1] if case.interval else POLICIES:
            wanted = truth.fires(case, policy.value, around)
            found, backwards = _found(Cron(case.text, name, policy), around)
            outcome.comparisons += 1
            outcome.fires += len(wanted)
            if not wanted == found == backwards:
                outcome.mismatches.append(
                    f"{name} {case.text!r} {policy}: wanted {wanted}, next {found}, previous {backwards}"
                )


def _found(timing: Cron, around: truth.Window) -> tuple[list[int], list[int]]:
    """The fires in the window in UTC minutes, found forwards and backwards."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    start = epoch + around.start * truth.MINUTE
    end = epoch + around.end * truth.MINUTE
    forwards = list(fires_between(timing, start - timedelta(seconds=1), end))
    backwards = []
    fire = timing.previous(end + timedelta(seconds=1))
    while fire is not None and fire >= start:
        backwards.append(fire)
        fire = timing.previous(fire)
    return [_minute(each) for each in forwards], [_minute(each) for each in reversed(backwards)]


def _minute(instant: datetime) -> int:
    whole, rest = divmod(int(instant.timestamp()), 60)
    assert rest == 0
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--last", type=int, default=2037)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zones", type=int, help="how many zones, instead of all")
    parser.add_argument("--report", type=Path, help="write the result here too, as Markdown")
    arguments = parser.parse_args()
    zones = distinct_zones()
    if arguments.zones:
        zones = random.Random(arguments.seed).sample(zones, arguments.zones)
    began = time.monotonic()
    outcome = sweep(zones, arguments.first, arguments.last, arguments.seed)
    text = _report(outcome, arguments, time.monotonic() - began)
    print(text)  # noqa: T201 - a command
    if arguments.report:
        arguments.report.write_text(text + "\n", encoding="utf-8")
    return 1 if outcome.mismatches else 0


def _report(outcome: Outcome, arguments: Any, took: float) -> str:
    lines = [
        "| | |",
        "|---|---|",
        f"| zone data | {zone_data_version()} |",
        f"| zones | {outcome.zones} distinct, of {len(zone_names())} names |",
        f"| years | {arguments.first} to {arguments.last} |",
        f"| seed | {arguments.seed} |",
        f"| offset changes | {outcome.transitions:,} |",
        f"| comparisons (expression x policy x offset change) | {outcome.comparisons:,} |",
        f"| fire times compared, forwards and backwards | {outcome.fires:,} |",
        f"| mismatches | {len(outcome.mismatches)} |",
        f"| took | {took:.0f} s |",
    ]
    return "\n".join(lines + [f"- {each}" for each in outcome.mismatches[:20]])


if __name__ == "__main__":
    sys.exit(main())
