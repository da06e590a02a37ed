"""When a cron expression should fire, found by looking at every minute of the zone's clock: slow and plain.

Shares no code with cronq: offsets come straight from zoneinfo, matching is set membership, and each DST
policy is its definition in words, applied minute by minute.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
EVERY_DAY = frozenset(range(1, 32))


@cache
def zone_info(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def zone_bytes(name: str) -> bytes:
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def offset_at(zone: ZoneInfo, minute: int) -> int:
    """The zone's offset in minutes at that many minutes since 1970 in UTC."""
    there = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert there is not None
    seconds = there.days * 86400 + there.seconds
    assert seconds % 60 == 0
    return seconds // 60


def transitions(zone: ZoneInfo, first_year: int, last_year: int) -> list[int]:
    """The UTC minutes at which the offset changes, found by looking every six hours."""
    step = 360
    start = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp()) // 60
    stop = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp()) // 60
    looks = [(minute, offset_at(zone, minute)) for minute in range(start, stop + step, step)]
    return [
        next(minute for minute in range(low + 1, high + 1) if offset_at(zone, minute) != before)
        for (low, before), (high, after) in pairwise(looks)
        if before != after
    ]


@dataclass(frozen=True)
class Case:
    """One expression of minutes, hours and days, with the sets it means."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    interval: bool
    days: frozenset[int] = EVERY_DAY
    weekdays: frozenset[int] = frozenset(range(7))  # Monday is 0

    def matches(self, wall: int) -> bool:
        """Whether the wall clock that shows `wall` minutes since 1970 matches."""
        day, minute = divmod(wall, 1440)
        if minute % 60 not in self.minutes or minute // 60 not in self.hours:
            return False
        shown = datetime(1970, 1, 1) + timedelta(days=day)  # noqa: DTZ001 - a wall clock
        return shown.day in self.days and shown.weekday() in self.weekdays


@dataclass(frozen=True)
class Window:
    """Every UTC minute around one transition, with what the wall clock shows and had shown at most before."""

    start: int
    minutes: tuple[tuple[int, int, int], ...]  # (UTC minute, wall, the highest wall before it)

    @property
    def end(self) -> int:
        return self.minutes[-1][0]


def window(zone: ZoneInfo, transition: int) -> Window:
    """The minutes from before the transition until after everything that it moves."""
    shift = abs(offset_at(zone, transition) - offset_at(zone, transition - 1))
    start, stop = transition - shift - 100, transition + shift + 100
    highest = max(minute + offset_at(zone, minute) for minute in range(start - 1600, start))
    found = []
    for minute in range(start, stop):
        wall = minute + offset_at(zone, minute)
        found.append((minute, wall, highest))
        highest = max(highest, wall)
    return Window(start, tuple(found))


def fires(case: Case, policy: str, around: Window) -> list[int]:
    """The UTC minutes of the window at which the policy fires."""
    found = []
    for minute, wall, highest in around.minutes:
        jumped = wall > highest + 1 and any(case.matches(passed) for passed in range(highest + 1, wall))
        match = case.matches(wall)
        if case.interval or policy == "utc":
            due = match
        elif policy == "vixie":
            due = wall > highest and (match or jumped)
        elif policy == "skip":
            due = wall > highest and match
        else:
            due = match or jumped
        if due:
            found.append(minute)
    return found


def some_cases(draw: random.Random, around: Window) -> list[Case]:
    """Expressions that have something to do near the transition, of every shape the policies tell apart."""
    _, wall, highest = draw.choice(
        [each for each in around.minutes if abs(each[1] - each[2]) != 1] or [*around.minutes]
    )
    hours = {draw.choice([wall, highest, wall - 1]) // 60 % 24}
    minutes = {wall % 60}
    more_minutes, more_hours = (
        {draw.randrange(60) for _ in range(3)},
        hours | {draw.randrange(24) for _ in range(2)},
    )
    day = (datetime(1970, 1, 1) + timedelta(minutes=wall)).day  # noqa: DTZ001 - a wall clock
    weekday = (wall // 1440 + 3) % 7
    step = draw.choice((5, 7, 15, 20, 30))
    low = draw.randrange(0, 22)
    every, three = frozenset(range(60)), frozenset(range(low, low + 3))
    return [
        _fixed(minutes, hours),
        _fixed(more_minutes, more_hours),
        _fixed({0}, {0}),
        _fixed(more_minutes, hours, days=frozenset({day, max(day - 1, 1)})),
        _fixed(more_minutes, hours, weekdays=frozenset({weekday})),
        Case(f"*/{step} * * * *", frozenset(range(0, 60, step)), frozenset(range(24)), interval=True),
        Case(f"{wall % 60} * * * *", frozenset(minutes), frozenset(range(24)), interval=True),
        Case(f"* {wall // 60 % 24} * * *", every, frozenset({wall // 60 % 24}), interval=True),
        Case(f"{wall % 60} {low}-{low + 2} * * *", frozenset(minutes), three, interval=True),
        Case("0 */2 * * *", frozenset({0}), frozenset(range(0, 24, 2)), interval=True),
    ]  # fmt: skip


def _fixed(
    minutes: set[int],
    hours: set[int],
    days: frozenset[int] = EVERY_DAY,
    weekdays: frozenset[int] = frozenset(range(7)),
) -> Case:
    day_text = "*" if days == EVERY_DAY else ",".join(map(str, sorted(days)))
    week_text = "*" if len(weekdays) == 7 else ",".join(str((day + 1) % 7) for day in sorted(weekdays))
    text = (
        f"{','.join(map(str, sorted(minutes)))} {','.join(map(str, sorted(hours)))} {day_text} * {week_text}"
    )
    return Case(text, frozenset(minutes), frozenset(hours), interval=False, days=days, weekdays=weekdays)
