"""A calendar of what became of fire times: of days, hours or minutes, as fits how often they come."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from cronq.job import State
from cronq.web.format import NAMES

MOST_JOBS: Final = 8000
"""Jobs that a calendar counts: those of its whole time, unless several come each second."""

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


@dataclass(frozen=True, slots=True)
class Calendar:
    """A table of cells; its first column says what the row is."""

    unit: str  #: day, hour or minute
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]

    @property
    def start(self) -> datetime:
        """The instant it begins at."""
        return self.rows[0][1][0].start


def empty_calendar(daily: float, zone: ZoneInfo, now: datetime) -> Calendar:
    """Return an unfilled calendar, on the clocks of `zone`, for what fires at most `daily` times a day."""
    here = now.astimezone(zone)
    if daily <= 150:  # noqa: PLR2004 - about each ten minutes
        monday = here.date() - timedelta(days=here.weekday() + 28)
        weeks = [[monday + timedelta(days=7 * week + day) for day in range(7)] for week in range(5)]
        rows = [
            (f"{week[0]:%-d %b}", [Cell(_midnight(day, zone), f"{day:%a %-d %b}") for day in week])
            for week in weeks
        ]
        return Calendar("day", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], rows)
    if daily <= 1500:  # noqa: PLR2004 - about each minute
        first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=71)
        hours = [(first + timedelta(hours=number)).astimezone(zone) for number in range(72)]
        return _by("hour", [Cell(hour, f"{hour:%a %-d %b %H}:00") for hour in hours], 24, "%a %-d %b %H:00")
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=59)
    minutes = [(first + timedelta(minutes=number)).astimezone(zone) for number in range(60)]
    return _by("minute", [Cell(minute, f"{minute:%H:%M}") for minute in minutes], 20, "%H:%M")


def fill(calendar: Calendar, rows: Iterable[Mapping[Any, Any]]) -> Calendar:
    """Count the jobs `rows` in the cells of `calendar`, and return it."""
    cells = {_key(calendar.unit, cell.start): cell for _, line in calendar.rows for cell in line}
    zone = calendar.start.tzinfo
    for row in rows:
        cell = cells.get(_key(calendar.unit, row["fire_time"].astimezone(zone)))
        if cell is not None:
            cell.counts[row["state"]] += 1
    return calendar


def _by(unit: str, cells: Sequence[Cell], width: int, label: str) -> Calendar:
    rows = [cells[begin : begin + width] for begin in range(0, len(cells), width)]
    heads = [f"+{number}" if number else unit for number in range(width)]
    return Calendar(unit, heads, [(row[0].start.strftime(label), row) for row in rows])


def _midnight(day: Any, zone: ZoneInfo) -> datetime:  # noqa: ANN401 - a date
    return datetime(day.year, day.month, day.day, tzinfo=zone)


def _key(unit: str, moment: datetime) -> object:
    if unit == "day":
        return moment.date()
    moment = moment.astimezone(UTC).replace(second=0, microsecond=0)
    return moment.replace(minute=0) if unit == "hour" else moment
