"""Lives during which the clocks of Paris change, and when the schedules of the hours around it are due.

By the wall clock that `zoneinfo` tells, second by second: nothing here is cronq's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from .kernel import START

ZONE: Final = ZoneInfo("Europe/Paris")
SPRING: Final = datetime(2027, 3, 28, 1, tzinfo=UTC).timestamp()
"""02:00 becomes 03:00: the hour in between does not exist."""
AUTUMN: Final = datetime(2027, 10, 31, 1, tzinfo=UTC).timestamp()
"""03:00 becomes 02:00: the hour before it comes a second time."""
BEFORE_S: Final = 10.0

HOURS: Final = {f"hour-{hour}": hour for hour in (1, 2, 3)}
"""Every other second of one hour, by the wall clock: in both copies of it, or in none."""
ONCE: Final = "two-o-clock"
"""Once a day: in spring at the instant at which the clocks change, in autumn at the first 02:00 only."""
CRONS: Final = {**{name: f"*/2 * {hour} * * *" for name, hour in HOURS.items()}, ONCE: "0 0 2 * * *"}


def beginning(seed: int) -> float:
    """Return when the life of `seed` begins: of eight, one ends summer time and one begins it."""
    return {3: SPRING - BEFORE_S, 7: AUTUMN - BEFORE_S}.get(seed % 8, START)


def changes(began: float) -> bool:
    """Tell whether the clocks change in a life that began then."""
    return began != START


def fire_times(name: str, start: datetime, until: float) -> Iterator[datetime]:
    """Yield when the schedule `name` is due from `start` on."""
    second = start.replace(microsecond=0)
    while second.timestamp() <= until:
        if second >= start and _is_due(name, second):
            yield second
        second += timedelta(seconds=1)


def _is_due(name: str, second: datetime) -> bool:
    if name == ONCE:
        return second.timestamp() == SPRING
    there = second.astimezone(ZONE)
    return there.hour == HOURS[name] and there.second % 2 == 0
