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
    counts: list[Counter[str]] = [Counter() for _ in range(MINUTES)]
    end = start + timedelta(days=1)
    for member in members:
        for fire in fires_between(member.timing, start - timedelta(microseconds=1), end, MOST_FIRES):
            moved = fire + _shift(member, fire)
            minute = (moved - start) // timedelta(minutes=1)
            if 0 <= minute < MINUTES:
                counts[minute][member.name] += 1
    per_minute = tuple(sum(each.values()) for each in counts)
    threshold = max(HERD_AT_LEAST, HERD_TIMES_MEAN * sum(per_minute) / MINUTES)
    herds = [
        Herd(minute, fires, tuple(name for name, _ in counts[minute].most_common()))
        for minute, fires in enumerate(per_minute)
        if fires >= threshold
    ]
    herds.sort(key=lambda each: (-each.fires, each.minute))
    return Load(start, per_minute, tuple(herds), tuple(_advice(members, herds)))


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
