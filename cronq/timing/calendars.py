"""A calendar says on which days and in which spans nothing may fire. It is data: named and comparable."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from cronq.timing.base import EPOCH, instant_from, iso, require_aware
from cronq.timing.dst import instant_of
from cronq.timing.errors import InvalidTiming
from cronq.timing.wall import DAY_SECONDS, EPOCH_ORDINAL
from cronq.timing.zones import zone

SUNDAY = 7
LONGEST_SEARCH = 400
"""How many days are searched for a business day before giving up."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """`days` are closed from the first to the last of each pair, in the local time of the zone that asks.

    `spans` are closed instants [start, end), such as a freeze window. `weekend` (ISO: Monday is 1) says which
    open days are no business days (`weekend_closed`: but closed, too). `tz` overrides the asking zone.
    """

    name: str
    days: tuple[tuple[date, date], ...] = ()
    spans: tuple[tuple[datetime, datetime], ...] = ()
    weekend: tuple[int, ...] = (6, 7)
    weekend_closed: bool = False
    tz: str | None = None
    _starts: tuple[date, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if self.tz is not None:
            zone(self.tz)
        if not set(self.weekend) < set(range(1, SUNDAY + 1)):
            raise InvalidTiming("a weekend is some days of 1 (Monday) to 7, not all", field="weekend",
                                text=str(self.weekend), suggestion="write (6, 7)")  # fmt: skip
        put = object.__setattr__
        put(self, "days", _merged(self.days))
        put(self, "spans", tuple(sorted((_aware(start), _aware(end)) for start, end in self.spans)))
        put(self, "weekend", tuple(sorted(self.weekend)))
        put(self, "_starts", tuple(start for start, _ in self.days))
        if any(end <= start for start, end in self.spans):
            raise InvalidTiming(
                "a span ends before it starts", field="spans", suggestion="write its start first"
            )

    def closed_day(self, day: date) -> bool:
        """Return whether the whole of `day` is closed."""
        index = bisect_right(self._starts, day) - 1
        if index >= 0 and day <= self.days[index][1]:
            return True
        return self.weekend_closed and day.isoweekday() in self.weekend

    def business_day(self, day: date) -> bool:
        """Return whether `day` is neither closed nor part of a weekend."""
        return day.isoweekday() not in self.weekend and not self.closed_day(day)

    def touched(self, day: date, tz: str) -> bool:
        """Return whether any part of the local `day` is closed."""
        if self.closed_day(day):
            return True
        start, end = self.midnight(day, tz), self.midnight(day + timedelta(days=1), tz)
        return any(begin < end and start < finish for begin, finish in self.spans)

    def stretch(self, instant: datetime, tz: str) -> tuple[datetime, datetime] | None:
        """Return the closed stretch [start, end) around `instant` in the zone `tz`; None: it is open."""
        day = self.local_day(instant, tz)
        if self.closed_day(day):
            first = last = day
            while self.closed_day(first - timedelta(days=1)) and (day - first).days < LONGEST_SEARCH:
                first -= timedelta(days=1)
            while self.closed_day(last + timedelta(days=1)) and (last - day).days < LONGEST_SEARCH:
                last += timedelta(days=1)
            return self.midnight(first, tz), self.midnight(last + timedelta(days=1), tz)
        return next(((start, end) for start, end in self.spans if start <= instant < end), None)

    def local_day(self, instant: datetime, tz: str) -> date:
        """Return the date that clocks in the zone show at `instant`."""
        return instant.astimezone(zone(self.tz or tz).info).date()

    def midnight(self, day: date, tz: str) -> datetime:
        """Return the instant at which `day` begins in the zone."""
        wall = (day.toordinal() - EPOCH_ORDINAL) * DAY_SECONDS
        return EPOCH + timedelta(seconds=instant_of(wall, zone(self.tz or tz)))

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `calendar_from` builds an equal calendar."""
        data: dict[str, Any] = {"name": self.name}
        if self.days:
            data["days"] = [
                first.isoformat() if first == last else f"{first.isoformat()}/{last.isoformat()}"
                for first, last in self.days
            ]
        if self.spans:
            data["spans"] = [f"{iso(start)}/{iso(end)}" for start, end in self.spans]
        if self.weekend != (6, 7):
            data["weekend"] = list(self.weekend)
        if self.weekend_closed:
            data["weekend_closed"] = True
        if self.tz is not None:
            data["tz"] = self.tz
        return data


def calendar_from(data: Mapping[str, Any]) -> Calendar:
    """Build the calendar that `data` describes; raises InvalidTiming.

    Shape: {"name": str, "days": ["2026-12-25", "2026-12-24/2027-01-02"], "spans": ["<instant>/<instant>"],
    "weekend": [6, 7], "weekend_closed": bool, "tz": str}; all but the name may be left out.
    """
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidTiming("a calendar has a name", field="calendar", suggestion='write {"name": …}')
    return Calendar(
        name,
        tuple(_days(each) for each in _list(data, "days")),
        tuple(_span(each) for each in _list(data, "spans")),
        tuple(_list(data, "weekend")) if "weekend" in data else (6, 7),
        bool(data.get("weekend_closed", False)),
        data.get("tz"),
    )


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidTiming(f"{key} is a list", field=key, suggestion="write a list", text=str(value))
    return list(value)


def _days(text: object) -> tuple[date, date]:
    first, _, last = str(text).partition("/")
    try:
        return date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError:
        raise InvalidTiming("this is no date or range of dates", field="days", text=str(text),
                            suggestion="write 2026-12-25 or 2026-12-24/2027-01-02") from None  # fmt: skip


def _span(text: object) -> tuple[datetime, datetime]:
    first, slash, last = str(text).partition("/")
    if not slash:
        raise InvalidTiming("a span has two ends", field="spans", text=first,
                            suggestion="write 2026-12-23T18:00Z/2027-01-04T08:00Z")  # fmt: skip
    return instant_from(first, "spans"), instant_from(last, "spans")


def _merged(days: Iterable[tuple[date, date]]) -> tuple[tuple[date, date], ...]:
    """Return the ranges sorted, with those that touch or overlap joined."""
    merged: list[tuple[date, date]] = []
    for first, last in sorted(days):
        if last < first:
            raise InvalidTiming("a range of days ends before it starts", field="days", text=f"{first}/{last}",
                                suggestion=f"write {last}/{first}")  # fmt: skip
        if merged and first <= merged[-1][1] + timedelta(days=1):
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _aware(instant: datetime) -> datetime:
    return require_aware(instant, "spans")
