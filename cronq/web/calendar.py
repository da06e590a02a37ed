"""A calendar of what became of fire times: of days, hours or minutes, as fits how often they come."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from cronq.job import State
from cronq.web.format import NAMES

MOST_JOBS: Final = 8000
"""Jobs that a calendar counts: those of its whole time, unless several come each second."""

MINUTES_A_ROW: Final = 20

MOST, SOME = 1 / 2, 1 / 10
"""Shares of the fire times from which on the worst gives a cell its colour."""

WAITING: Final = (State.SCHEDULED, State.PENDING, State.RETRYING)
STATES: Final = {
    "failed": ("\N{MULTIPLICATION X}", (State.FAILED, State.TIMED_OUT)),
    "skipped": ("\N{EN DASH}", (State.SKIPPED, State.CANCELLED)),
    "running": ("\N{BLACK RIGHT-POINTING SMALL TRIANGLE}", (State.RUNNING, *WAITING)),
    "completed": ("\N{CHECK MARK}", (State.COMPLETED,)),
}
"""Of each kind of cell: its sign, and the states that count as it. The first that there is any of is it."""


@dataclass(slots=True)
class Cell:
    """One day, hour or minute."""

    start: datetime  #: aware, on the schedule's clocks
    label: str  #: what is said of it: "Sat 21 Nov"
    counts: Counter[str] = field(default_factory=Counter)  #: by state

    @property
    def kind(self) -> str:
        """The worst that happened in it, or `empty`."""
        return next((kind for kind in STATES if self.count(kind)), "empty")

    @property
    def tone(self) -> str:
        """`most` where that became of at least half of its fire times, `some` of a tenth, else `few`."""
        share = self.count(self.kind) / max(1, self.counts.total())
        return "most" if share >= MOST else "some" if share >= SOME else "few"

    @property
    def sign(self) -> str:
        """The same for those who do not see the colour; with how many, unless it is all of them."""
        count = self.count(self.kind)
        return STATES[self.kind][0] + (f" {count}" if count < self.counts.total() else "")

    def count(self, kind: str) -> int:
        """Return how many fire times are of a kind."""
        return sum(self.counts[state] for state in STATES[kind][1]) if kind in STATES else 0

    @property
    def said(self) -> str:
        """The same in words."""
        counted = ", ".join(f"{count} {NAMES[state]}" for state, count in self.counts.most_common())
        return f"{self.label}: {counted or 'nothing'}"


Slot = Sequence[Cell]
"""What stands in one column of a row: a cell; of an hour that comes twice two, of one that is none none."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """A table of cells; its first column says what the row is."""

    unit: str  #: day, hour or minute
    heads: Sequence[str]  #: of the columns
    rows: Sequence[tuple[str, Sequence[Slot]]]

    @property
    def cells(self) -> Iterator[Cell]:
        """All of them, the oldest first."""
        return (cell for _, slots in self.rows for slot in slots for cell in slot)

    @property
    def start(self) -> datetime:
        """The instant it begins at."""
        return next(self.cells).start


def empty_calendar(daily: float, zone: ZoneInfo, now: datetime) -> Calendar:
    """Return an unfilled calendar, on the clocks of `zone`, for what fires at most `daily` times a day."""
    here = now.astimezone(zone)
    if daily <= 150:  # noqa: PLR2004 - about each ten minutes
        monday = here.date() - timedelta(days=here.weekday() + 28)
        weeks = [[monday + timedelta(days=7 * week + day) for day in range(7)] for week in range(5)]
        rows = [
            (f"{week[0]:%-d %b}", [[Cell(_midnight(day, zone), f"{day:%a %-d %b}")] for day in week])
            for week in weeks
        ]
        return Calendar("day", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], rows)
    if daily <= 1500:  # noqa: PLR2004 - about each minute
        days = [here.date() - timedelta(days=number) for number in (3, 2, 1, 0)]
        return Calendar("hour", _heads(24), [(f"{day:%a %-d %b}", _hours(day, here)) for day in days])
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=59)
    minutes = [(first + timedelta(minutes=number)).astimezone(zone) for number in range(60)]
    begins = range(0, 60, MINUTES_A_ROW)
    rows = [
        (f"{row[0]:%H:%M}", [[Cell(minute, f"{minute:%H:%M}")] for minute in row])
        for row in (minutes[begin : begin + MINUTES_A_ROW] for begin in begins)
    ]
    return Calendar("minute", _heads(MINUTES_A_ROW, "+"), rows)


def fill(calendar: Calendar, rows: Iterable[Mapping[Any, Any]]) -> Calendar:
    """Count the jobs `rows` in the cells of `calendar`, and return it."""
    cells = {_key(calendar.unit, cell.start): cell for cell in calendar.cells}
    zone = calendar.start.tzinfo
    for row in rows:
        cell = cells.get(_key(calendar.unit, row["fire_time"].astimezone(zone)))
        if cell is not None:
            cell.counts[row["state"]] += 1
    return calendar


def _hours(day: date, now: datetime) -> list[Slot]:
    """Return the hours of a day that have begun by `now`, each in the column of its name on those clocks."""
    slots: list[list[Cell]] = [[] for _ in range(24)]
    zone = now.tzinfo
    instant, end = (_midnight(each, zone).astimezone(UTC) for each in (day, day + timedelta(days=1)))
    while instant < end and instant <= now:
        hour = instant.astimezone(zone).replace(minute=0, second=0, microsecond=0)
        slots[hour.hour].append(Cell(hour, f"{hour:%a %-d %b %H}:00"))
        instant += timedelta(hours=1)
    return list(slots)


def _heads(width: int, sign: str = "") -> list[str]:
    """Return what stands over the columns: over each fourth its number."""
    return [f"{sign}{number}" if number % 4 == 0 else "" for number in range(width)]


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone)


def _key(unit: str, moment: datetime) -> object:
    if unit == "day":
        return moment.date()
    # An hour is one of the zone's: there are zones whose hours begin at half past.
    moment = moment.replace(second=0, microsecond=0)
    return (moment.replace(minute=0) if unit == "hour" else moment).astimezone(UTC)
