"""How many jobs start in each minute of a day? Finds the herds and says who could leave them."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cronq.timing.base import Timing, fires_between
from cronq.timing.cron import Cron
from cronq.timing.durations import in_words
from cronq.timing.jitter import jitter

MINUTES = 1440
MOST_FIRES = 86_400
HERD_AT_LEAST = 5
HERD_TIMES_MEAN = 4
NAMED = 3
SHORT_GAP = timedelta(minutes=10)


class Member(NamedTuple):
    """One schedule as the load sees it."""

    name: str
    timing: Timing
    jitter: timedelta = timedelta(0)
    schedule_id: str = ""


class Herd(NamedTuple):
    """One minute (of the day, from its start) in which far more jobs start than on average."""

    minute: int
    fires: int
    names: tuple[str, ...]


class Load(NamedTuple):
    """Fires per minute of the day from `start`, the herds (biggest first) and what would thin them out."""

    start: datetime
    per_minute: tuple[int, ...]
    herds: tuple[Herd, ...]
    advice: tuple[str, ...]


def daily_load(members: Sequence[Member], start: datetime) -> Load:
    """Return the load of 24 hours from `start` (aware); at most 86,400 fires of a schedule are counted."""
    groups = [(_per_minute(those[0], start), those) for those in _alike(members)]
    totals: Counter[int] = Counter()
    for counts, those in groups:
        for minute, fires in counts.items():
            totals[minute] += fires * len(those)
    threshold = max(HERD_AT_LEAST, HERD_TIMES_MEAN * totals.total() / MINUTES)
    herds = [
        Herd(minute, fires, tuple(_names(groups, minute)))
        for minute, fires in totals.items()
        if fires >= threshold
    ]
    herds.sort(key=lambda each: (-each.fires, each.minute))
    per_minute = tuple(totals[minute] for minute in range(MINUTES))
    return Load(start, per_minute, tuple(herds), tuple(_advice(members, herds)))


def _alike(members: Sequence[Member]) -> list[list[Member]]:
    """Return the members in groups that fire alike: of ten thousand schedules few differ in their timing."""
    groups: dict[object, list[Member]] = {}
    for member in members:
        groups.setdefault(member if member.jitter else member.timing, []).append(member)
    return list(groups.values())


def _per_minute(member: Member, start: datetime) -> Counter[int]:
    end = start + timedelta(days=1)
    fires = fires_between(member.timing, start - timedelta(microseconds=1), end, MOST_FIRES)
    minutes = Counter((fire + _shift(member, fire) - start) // timedelta(minutes=1) for fire in fires)
    return Counter({minute: count for minute, count in minutes.items() if 0 <= minute < MINUTES})


def _names(groups: Sequence[tuple[Counter[int], list[Member]]], minute: int) -> list[str]:
    """Return who fires in `minute`, the busiest first."""
    found = [
        (counts[minute], member.name) for counts, those in groups if minute in counts for member in those
    ]
    return [name for _, name in sorted(found, key=lambda each: -each[0])]


def _shift(member: Member, fire: datetime) -> timedelta:
    if not member.jitter:
        return timedelta(0)
    return jitter(member.schedule_id or member.name, fire, member.jitter, member.timing.next(fire))


def _advice(members: Sequence[Member], herds: Sequence[Herd]) -> list[str]:
    """Return one proposal for each schedule of a herd that has no jitter yet, biggest herd first."""
    by_name = {member.name: member for member in members}
    told: dict[str, str] = {}
    for herd in herds:
        for name in herd.names:
            member = by_name[name]
            if name not in told and not member.jitter:
                told[name] = f"{name}: {_proposal(member.timing)}"
    return list(told.values())


def _proposal(timing: Timing) -> str:
    """Return what to change: an `H` for a fixed minute, else jitter."""
    if isinstance(timing, Cron) and isinstance(timing.expression, str) and not timing.hashed:
        fields = timing.expression.split()
        if len(fields) == 5 and fields[0].isdigit():  # noqa: PLR2004 - minutes first
            return f"write {' '.join(['H', *fields[1:]])!r} instead of {timing.expression!r}"
    gap = timedelta(days=1) / max(timing.daily_bound(), 1)
    spread = min(gap / 2, SHORT_GAP)
    return f"add jitter of {in_words(timedelta(seconds=max(int(spread.total_seconds()), 1)))}"
