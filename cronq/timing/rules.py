"""The next and previous wall time of one recurrence rule, searched near the time asked for, with bounds."""

import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta
from typing import Any

from dateutil.rrule import rrulestr

from cronq.timing.rule_text import ANCHOR
from cronq.timing.wall import NEVER

DAY = 86400
LAST = (datetime(9000, 1, 1) - ANCHOR).days * DAY  # noqa: DTZ001 - a wall clock
HORIZON = 41 * 366
"""How many days a rule is searched: within them, 29 February comes on each weekday."""


class WallRule(ABC):
    """A matcher of wall times for `cronq.timing.dst.LocalFires`; `daily` bounds its fires per day."""

    interval = False
    daily = 1.0

    @abstractmethod
    def next(self, wall: int) -> int:
        """Return the first match that is not before `wall`, or NEVER."""

    @abstractmethod
    def previous(self, wall: int) -> int:
        """Return the last match that is not after `wall`, or -NEVER."""


class DatedRules(WallRule):
    """Listed wall times."""

    def __init__(self, walls: tuple[int, ...]) -> None:
        self._walls = walls

    def next(self, wall: int) -> int:  # noqa: D102 - as the base says
        index = bisect_left(self._walls, wall)
        return self._walls[index] if index < len(self._walls) else NEVER

    def previous(self, wall: int) -> int:  # noqa: D102 - as the base says
        index = bisect_right(self._walls, wall) - 1
        return self._walls[index] if index >= 0 else -NEVER


class Counted(WallRule):
    """The first `count` matches of a rule but for the removed ones, which count; found when asked for."""

    def __init__(self, rule: WallRule, count: int, removed: frozenset[int]) -> None:
        self._rule, self._count, self._removed = rule, count, removed
        self._listed: DatedRules | None = None
        self.interval, self.daily = rule.interval, min(rule.daily, count)

    def _all(self) -> DatedRules:
        if self._listed is None:
            found: list[int] = []
            wall = self._rule.next(-LAST)
            while wall < NEVER and len(found) < self._count:
                found.append(wall)
                wall = self._rule.next(wall + 1)
            self._listed = DatedRules(tuple(each for each in found if each not in self._removed))
        return self._listed

    def next(self, wall: int) -> int:  # noqa: D102 - as the base says
        return self._all().next(wall)

    def previous(self, wall: int) -> int:  # noqa: D102 - as the base says
        return self._all().previous(wall)


class Ruled(WallRule):
    """What rules evaluated by dateutil share: the start, the end, the removed times."""

    def __init__(self, rule: str, start: datetime, until: datetime | None, removed: frozenset[int]) -> None:
        body = re.sub(r";?(UNTIL|COUNT)=[^;]*", "", rule).strip(";")
        parsed: Any = rrulestr(body, dtstart=start)
        self._rule = parsed
        self._start, self._interval = start, int(parsed._interval)  # noqa: SLF001 - dateutil shows it nowhere else
        self._first = seconds(start)
        self._last = LAST if until is None else seconds(until)
        self._removed = removed

    def next(self, wall: int) -> int:  # noqa: D102 - as the base says
        wall = max(wall, self._first)
        while wall <= self._last:
            found = self._find_next(wall)
            if found > self._last:
                break
            if found not in self._removed:
                return found
            wall = found + 1
        return NEVER

    def previous(self, wall: int) -> int:  # noqa: D102 - as the base says
        wall = min(wall, self._last)
        while wall >= self._first:
            found = self._find_previous(wall)
            if found < self._first:
                break
            if found not in self._removed:
                return found
            wall = found - 1
        return -NEVER

    @abstractmethod
    def _find_next(self, wall: int) -> int: ...
    @abstractmethod
    def _find_previous(self, wall: int) -> int: ...


def seconds(wall: datetime) -> int:
    """Return a naive wall time in seconds since 1970-01-01 00:00 on the same clock."""
    since = wall - ANCHOR
    return since.days * DAY + since.seconds


def wall_time(value: int) -> datetime:
    """Return the naive wall time that is `value` seconds after 1970-01-01 00:00."""
    return ANCHOR + timedelta(seconds=max(min(value, LAST), -LAST // 5))
