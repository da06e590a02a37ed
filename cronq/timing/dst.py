"""A wall-clock match becomes a UTC instant: each real one if interval-like, else once per local time.

Time is cut into stretches of constant offset and matched inside each. The policies differ only in the wall
time from which a stretch is matched, where `real` is the wall time at its first second and `first` the
highest wall time that the zone's clocks had shown before it:

- an interval-like expression matches from `real`: it skips a gap and runs in both copies of a repeated hour;
- `vixie` matches from `first`: what fell into a gap comes due at the first valid instant (once, however many
  matches the gap swallowed), and the second copy of a repeated hour is passed over;
- `skip` matches from the later of the two, `both` from the earlier.

So a fixed-time expression under `vixie` fires for a local time at the first instant at which local clocks
reach it or pass it. The rule itself is Vixie cron's, as Cronos words it (HangfireIO/Cronos, README,
"Daylight Saving Time").
"""

from typing import Protocol

from cronq.schedule import Dst
from cronq.timing.wall import NEVER
from cronq.timing.zones import DAY, UTC_ZONE, Zone

SETTLED = 2 * DAY
"""More than any clock was ever set forward or back by, in seconds."""
REAL, FIRST, FIRST_REAL, ANY = 3, 4, 5, 6
"""Which item of a `Stretch` says where matching begins."""
ENTRIES = {Dst.VIXIE: FIRST, Dst.SKIP: FIRST_REAL, Dst.BOTH: ANY, Dst.UTC: REAL}


class Matcher(Protocol):
    """Matches wall times; `cronq.timing.wall.WallMatcher` is one."""

    def next(self, wall: int) -> int: ...  # noqa: D102
    def previous(self, wall: int) -> int: ...  # noqa: D102


class LocalFires:
    """The fires of one matcher in one zone under one policy, in UTC seconds."""

    __slots__ = ("_entry", "_matcher", "_zone")

    def __init__(self, matcher: Matcher, zone: Zone, policy: Dst, interval: bool) -> None:
        self._matcher = matcher
        self._zone = UTC_ZONE if policy is Dst.UTC else zone
        self._entry = REAL if interval else ENTRIES[policy]

    def next(self, instant: int) -> int:
        """Return the first fire that is not before the UTC second `instant`, or NEVER."""
        stretch = self._zone.stretch(instant)
        start, end, offset = stretch[0], stretch[1], stretch[2]
        entry: int = stretch[self._entry]
        search = instant + offset
        if entry > search or instant == start:
            search = entry
        wall = self._matcher.next(search)
        while True:
            found = wall - offset
            if found < end:
                return found if found > start else start  # noqa: FURB136 - twice as fast as max()
            if end + offset - search > SETTLED and found - end > SETTLED:
                # No clock goes back behind `search` any more: nothing matches until shortly before `found`.
                if wall == NEVER:
                    return NEVER
                end = found - SETTLED
            stretch = self._zone.stretch(end)
            start, end, offset = stretch[0], stretch[1], stretch[2]
            entry = stretch[self._entry]
            if not search <= entry <= wall:
                wall = self._matcher.next(entry)
            elif wall == NEVER:
                return NEVER
            search = entry

    def previous(self, instant: int) -> int:
        """Return the last fire that is not after the UTC second `instant`, or -NEVER."""
        stretch = self._zone.stretch(instant)
        search = instant + stretch.offset
        wall = self._matcher.previous(search)
        while wall < stretch[self._entry]:
            stretch = self._zone.stretch(stretch.start - 1)
            top = stretch.end - 1 + stretch.offset
            if not wall <= top <= search:
                wall = self._matcher.previous(top)
            elif wall == -NEVER:
                return -NEVER
            search = top
        return max(wall - stretch.offset, stretch.start)


def instant_of(wall: int, zone: Zone) -> int:
    """Return the first UTC second at which the zone's clocks reach or pass the wall time `wall`."""
    stretch = zone.stretch(wall - 2 * DAY)
    while stretch.end + stretch.offset <= wall:
        stretch = zone.stretch(stretch.end)
    return max(wall - stretch.offset, stretch.start)
