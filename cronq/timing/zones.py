"""A zone is a row of stretches of constant UTC offset, found once and remembered.

The data always comes from the `tzdata` package, never from the machine, so that every beat and worker of one
installation computes the same fire times. A stretch also carries where matching begins in it under each DST
policy, which is all that the policies differ in; see `cronq.timing.dst`.
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]

from cronq.timing.errors import InvalidTiming

BLOCK = 31556952
"""A 400th of the Gregorian cycle in seconds: stretches are found in blocks of about a year."""
DAY = 86400
MEMORY = 2 * DAY
"""How far a wall clock can be ahead of the present one: no zone ever went back by more than a day."""
FAR = 1 << 62
EARLIEST, LATEST = -62_000_000_000, 253_000_000_000
"""UTC seconds between which Python can tell an offset: the years 5 to 9987."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stretch(NamedTuple):
    """UTC seconds [start, end) with one offset, and the wall time from which each policy matches in it."""

    start: int
    end: int
    offset: int  #: seconds east of UTC
    real: int  #: the wall time at `start`
    first: int  #: the highest wall time reached before: below `real` after a gap, above it in a repeat
    first_real: int  #: the greater of the two
    any: int  #: the smaller of the two


class Zone:
    """One time zone."""

    def __init__(self, name: str, info: tzinfo) -> None:
        self.name, self.info = name, info
        self._blocks: dict[int, tuple[list[int], list[Stretch]]] = {}
        self._recent = Stretch(0, 0, 0, 0, 0, 0, 0)

    def stretch(self, instant: int) -> Stretch:
        """Return the stretch that holds the UTC second `instant`."""
        recent = self._recent
        if recent.start <= instant < recent.end:
            return recent
        number = instant // BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._find(number * BLOCK)
        starts, stretches = block
        # Threads may overwrite each other here: it is a hint, and every value of it is right.
        recent = self._recent = stretches[bisect_right(starts, instant) - 1]
        return recent

    def offset(self, instant: int) -> int:
        """Return the offset from UTC in seconds at the UTC second `instant`."""
        known = EPOCH + timedelta(seconds=min(max(instant, EARLIEST), LATEST))
        there = known.astimezone(self.info).utcoffset()
        return 0 if there is None else there.days * DAY + there.seconds

    def _find(self, begin: int) -> tuple[list[int], list[Stretch]]:
        """Return the stretches of the block that begins at `begin`, by looking at every day."""
        stretches: list[Stretch] = []
        start, offset, reached = begin - MEMORY, self.offset(begin - MEMORY), -FAR
        stop = begin + BLOCK
        for change in [*self._changes(start, stop), stop]:
            end = min(change, begin) if start < begin < change else change
            while start < end:
                real = start + offset
                first = max(reached, real) if reached == -FAR else reached
                stretches.append(Stretch(start, end, offset, real, first, max(first, real), min(first, real)))
                reached = max(reached, end + offset)
                start, end = end, change
            offset = self.offset(change)
        kept = [each for each in stretches if each.start >= begin]
        return [each.start for each in kept], kept

    def _changes(self, start: int, stop: int) -> list[int]:
        """Return the UTC seconds in (start, stop) at which the offset changes."""
        found = []
        offset = self.offset(start)
        for day in range(start, stop, DAY):
            high = min(day + DAY, stop)
            later = self.offset(high)
            if later == offset:
                continue
            low = day
            while high - low > 1:
                middle = (low + high) // 2
                if self.offset(middle) == offset:
                    low = middle
                else:
                    high = middle
            if high < stop:
                found.append(high)
            offset = later
        return found


class FixedZone(Zone):
    """A zone that never changes: UTC."""

    def __init__(self, name: str) -> None:
        super().__init__(name, UTC)
        self._recent = Stretch(-FAR, FAR, 0, -FAR, -FAR, -FAR, -FAR)


UTC_ZONE = FixedZone("UTC")


@lru_cache(maxsize=1024)
def zone(name: str) -> Zone:
    """Return the zone called `name`, such as "Europe/Paris"; raises InvalidTiming."""
    if name in ("UTC", "Etc/UTC"):
        return UTC_ZONE
    if name not in zone_names():
        similar = {each.lower(): each for each in zone_names()}
        close = get_close_matches(name.lower()[:40], similar, 1)
        instead = f"did you mean {similar[close[0]]}?" if close else "write an IANA name such as Europe/Paris"
        raise InvalidTiming("there is no such time zone", field="tz", suggestion=instead, text=name)
    with files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return Zone(name, ZoneInfo.from_file(data, key=name))


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all zones of the `tzdata` package."""
    return frozenset(files(tzdata).joinpath("zones").read_text("ascii").split())


def zone_data_version() -> str:
    """Return the release of the zone data in use, such as "2026a"."""
    return str(tzdata.IANA_VERSION)
