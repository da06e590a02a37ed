"""The next and previous time at which a wall clock matches, in a world without zones: bit sets and seconds.

A wall time is the number of seconds since 1970-01-01 00:00 on that clock, as if it never changed its offset.
"""

from datetime import date
from functools import lru_cache

from cronq.timing.days import DayRule

DAY_SECONDS = 86400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
NEVER = 1 << 60
"""The wall time of something that does not come (again); for the past, `-NEVER`."""
LAST_DAY = date(9990, 1, 1).toordinal() - EPOCH_ORDINAL

ALL_HOURS = (1 << 24) - 1
EVERY_HOUR = sum(1 << (60 * hour) for hour in range(24))

_date = date.fromordinal


class WallMatcher:
    """Matches seconds, minutes, hours and days given as bit sets."""

    __slots__ = ("_first_second", "_last_second", "_minutes", "_rule", "_seconds", "_start", "_stop")

    def __init__(self, seconds: int, minutes: int, hours: int, rule: DayRule) -> None:
        self._seconds, self._minutes, self._rule = seconds, minutes_of_day(minutes, hours), rule
        self._first_second, self._last_second = _low(seconds), seconds.bit_length() - 1
        self._start = _low(self._minutes) * 60 + self._first_second
        self._stop = (self._minutes.bit_length() - 1) * 60 + self._last_second

    def next(self, wall: int) -> int:
        """Return the first matching wall time that is not before `wall`, or NEVER."""
        day, rest = divmod(wall, DAY_SECONDS)
        if not -EPOCH_ORDINAL < day < LAST_DAY:
            return NEVER if day > 0 else self.next((1 - EPOCH_ORDINAL) * DAY_SECONDS)
        today = _date(day + EPOCH_ORDINAL)
        days = self._rule.days(today.year, today.month)
        if days >> today.day & 1 and rest <= self._stop:
            return day * DAY_SECONDS + self._next_in_day(rest)
        later = days >> (today.day + 1)
        if later:
            return (day + (later & -later).bit_length()) * DAY_SECONDS + self._start
        found = self._rule.next_month(today.year, today.month)
        if found is None:
            return NEVER
        year, month, days = found
        return (date(year, month, _low(days)).toordinal() - EPOCH_ORDINAL) * DAY_SECONDS + self._start

    def _next_in_day(self, rest: int) -> int:
        """Return the first match at or after `rest` seconds into a day; there is one."""
        minute, second = divmod(rest, 60)
        if second > self._first_second:
            if self._minutes >> minute & 1:
                later = self._seconds >> second
                if later:
                    return rest + (later & -later).bit_length() - 1
            minute += 1
        later = self._minutes >> minute
        return (minute + (later & -later).bit_length() - 1) * 60 + self._first_second

    def previous(self, wall: int) -> int:
        """Return the last matching wall time that is not after `wall`, or -NEVER."""
        day, rest = divmod(wall, DAY_SECONDS)
        if not -EPOCH_ORDINAL < day < LAST_DAY:
            return -NEVER if day < 0 else self.previous(LAST_DAY * DAY_SECONDS - 1)
        today = _date(day + EPOCH_ORDINAL)
        days = self._rule.days(today.year, today.month)
        if days >> today.day & 1 and rest >= self._start:
            return day * DAY_SECONDS + self._previous_in_day(rest)
        earlier = days & ((1 << today.day) - 1)
        if earlier:
            return (day - today.day + earlier.bit_length() - 1) * DAY_SECONDS + self._stop
        found = self._rule.previous_month(today.year, today.month)
        if found is None:
            return -NEVER
        year, month, days = found
        last = date(year, month, days.bit_length() - 1).toordinal()
        return (last - EPOCH_ORDINAL) * DAY_SECONDS + self._stop

    def _previous_in_day(self, rest: int) -> int:
        """Return the last match at or before `rest` seconds into a day; there is one."""
        minute, second = divmod(rest, 60)
        if second < self._last_second:
            if self._minutes >> minute & 1:
                earlier = self._seconds & ((2 << second) - 1)
                if earlier:
                    return minute * 60 + earlier.bit_length() - 1
            minute -= 1
        earlier = self._minutes & ((2 << minute) - 1)
        return (earlier.bit_length() - 1) * 60 + self._last_second


@lru_cache(maxsize=4096)
def minutes_of_day(minutes: int, hours: int) -> int:
    """Return the 1,440 minutes of a day as a bit set: every set minute of every set hour."""
    spread = EVERY_HOUR
    if hours != ALL_HOURS:
        spread = 0
        while hours:
            hour = _low(hours)
            spread |= 1 << (60 * hour)
            hours ^= 1 << hour
    return minutes * spread


def _low(mask: int) -> int:
    """Return the lowest set bit's number; `mask` is not 0."""
    return (mask & -mask).bit_length() - 1
