"""Which days of a month does an expression name? Answered once per month as a bit set, then remembered.

Day-of-month and day-of-week join as Vixie's cron does: when one of the two fields begins with `*` both must
match, otherwise either is enough; `and` on request makes both necessary always.
"""

from calendar import isleap
from datetime import date
from functools import lru_cache

from cronq.timing.fields import Field, Special

LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EVERY_WEEK = 0b10000001000000100000010000001
"""Multiplied with a week of seven bits, it repeats that week five times."""
CENTURY_GAP = 41
"""A day that comes at all comes within 40 years: 29 February on a given weekday, across 2100."""
LAST_YEAR = 9990
"""Nothing is computed beyond this year: Python's calendar ends at 9999."""
SATURDAY = 6
EVERY_MONTH = tuple(range(1, 13))
ALL_MONTHS = 0b1111111111110


class DayRule:
    """The days that the day-of-month, month, day-of-week and year fields of one expression name together."""

    __slots__ = ("_both", "_days", "_known", "_weekdays", "_years", "months")

    def __init__(self, days: Field, months: Field, weekdays: Field, years: Field | None, both: bool) -> None:
        self._days, self._weekdays, self._both = days, weekdays, both or days.star or weekdays.star
        self._years = None if years is None else years.mask
        self.months = EVERY_MONTH if months.star and months.mask == ALL_MONTHS else _numbers(months.mask)
        self._known: dict[int, int] = {}

    def days(self, year: int, month: int) -> int:
        """Return the matching days of that month: bit d is set when day d matches."""
        key = year * 12 + month
        found = self._known.get(key)
        if found is None:
            if len(self._known) > 2400:  # noqa: PLR2004 - two centuries; a bound, not a tuning
                self._known.clear()
            found = self._known[key] = self._compute(year, month)
        return found

    def next_month(self, year: int, month: int) -> tuple[int, int, int] | None:
        """Return (year, month, days) of the first month after that one that has a matching day."""
        start = year
        while year <= min(start + CENTURY_GAP, LAST_YEAR):
            for candidate in self.months:
                if candidate > month:
                    days = self.days(year, candidate)
                    if days:
                        return year, candidate, days
            year, month = self._year_after(year), 0
            if self._years is not None and year - start > CENTURY_GAP:
                start = year
        return None

    def previous_month(self, year: int, month: int) -> tuple[int, int, int] | None:
        """Return (year, month, days) of the last month before that one that has a matching day."""
        start = year
        while year >= max(start - CENTURY_GAP, 1):
            for candidate in reversed(self.months):
                if candidate < month:
                    days = self.days(year, candidate)
                    if days:
                        return year, candidate, days
            year, month = self._year_before(year), 13
            if self._years is not None and start - year > CENTURY_GAP:
                start = year
        return None

    def _year_after(self, year: int) -> int:
        if self._years is None:
            return year + 1
        later = self._years >> (year + 1)
        return year + (later & -later).bit_length() if later else LAST_YEAR + 1

    def _year_before(self, year: int) -> int:
        if self._years is None:
            return year - 1
        earlier = self._years & ((1 << year) - 1)
        return earlier.bit_length() - 1

    def _compute(self, year: int, month: int) -> int:
        if month not in self.months or (self._years is not None and not self._years >> year & 1):
            return 0
        length = LENGTHS[month] + (month == 2 and isleap(year))  # noqa: PLR2004 - February
        first = date(year, month, 1).toordinal() % 7  # Sunday is 0
        whole = ((1 << length) - 1) << 1
        days, week = self._days.mask, self._weekdays.mask
        for special in self._days.specials:
            days |= _special_days(special, first, length)
        rotated = (week >> first | week << (7 - first)) & 127
        on_weekdays = rotated * EVERY_WEEK << 1
        for special in self._weekdays.specials:
            on_weekdays |= _special_weekdays(special, first, length)
        return (days & on_weekdays if self._both else days | on_weekdays) & whole


def _numbers(mask: int) -> tuple[int, ...]:
    return tuple([number for number in EVERY_MONTH if mask >> number & 1])


def _special_days(rule: Special, first: int, length: int) -> int:
    """Return the day that `rule` names in a month of `length` days whose 1st falls on weekday `first`."""
    if rule.rule == "last":
        return 1 << (length - rule.number) if rule.number < length else 0
    if rule.rule == "nearest":
        return 1 << _nearest_workday(rule.number, first, length) if rule.number <= length else 0
    last = (first + length - 1) % 7
    return 1 << (length - (1 if last == SATURDAY else 2 if last == 0 else 0))


def _nearest_workday(day: int, first: int, length: int) -> int:
    """Return the Monday-to-Friday day nearest to `day` that is still in the month."""
    weekday = (first + day - 1) % 7
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _special_weekdays(rule: Special, first: int, length: int) -> int:
    """Return the day that `rule` names: the nth or the last such weekday of the month."""
    day = 1 + (rule.number - first) % 7
    if rule.rule == "nth_dow":
        day += 7 * (rule.nth - 1)
        return 1 << day if day <= length else 0
    return 1 << (day + (length - day) // 7 * 7)


@lru_cache(maxsize=2048)
def day_rule(days: Field, months: Field, weekdays: Field, years: Field | None, both: bool) -> DayRule:
    """Return the rule for these fields; one for equal fields, so that months are computed once."""
    return DayRule(days, months, weekdays, years, both)
