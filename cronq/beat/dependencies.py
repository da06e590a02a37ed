"""Which schedules come after which? Refuses what could never run, and marks those that others wait for."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cronq.schedule import Schedule


def link(found: Iterable[Schedule]) -> tuple[list[Schedule], list[tuple[str, str]]]:
    """Return the schedules that can run, and (name, why not) of the others.

    One that comes after an unknown schedule, a fixed delay, itself in a circle, or a refused one is refused.
    """
    schedules = {schedule.name: schedule for schedule in found}
    refused: dict[str, str] = {}
    while True:
        wrong = {
            name: why
            for name, schedule in schedules.items()
            if name not in refused and (why := _why_not(schedule, schedules, refused)) is not None
        }
        if not wrong:
            break
        refused |= wrong
    good = [schedule for name, schedule in schedules.items() if name not in refused]
    followed = {name for schedule in good for name in _before(schedule)}
    return [replace(each, followed=each.name in followed) for each in good], list(refused.items())


def never_runs(schedule: Schedule, others: Mapping[str, Schedule]) -> str | None:
    """Return why `schedule` could never run after those of `others` that it names; None: it can."""
    return _why_not(schedule, {**others, schedule.name: schedule}, {})


def _why_not(schedule: Schedule, schedules: dict[str, Schedule], refused: dict[str, str]) -> str | None:
    for name in _before(schedule):
        if name not in schedules:
            return f"it comes after {name!r}, which is not declared"
        if name in refused:
            return f"it comes after {name!r}, which was refused"
        if schedules[name].timing.get("kind") == "delay":
            return f"it comes after {name!r}, whose fixed delay has no fire times in common with others"
    circle = _circle(schedule.name, schedules)
    return f"it comes after itself: {' → '.join(circle)}" if circle else None


def _circle(start: str, schedules: dict[str, Schedule]) -> list[str]:
    """Return a way from `start` back to it, in the order in which they would run; empty: there is none."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop()
        for name in _before(schedules[way[0]]):
            if name == start:
                return [start, *way]
            if name in schedules and name not in seen:
                seen.add(name)
                ways.append([name, *way])
    return []


def _before(schedule: Schedule) -> tuple[str, ...]:
    return () if schedule.after is None else schedule.after.schedules
