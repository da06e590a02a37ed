"""The next fire times of a timing, each with its local time and a note where anything is unusual."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from cronq.timing.base import EPOCH, Omission, Timing, iso, omissions
from cronq.timing.bounds import tz_of
from cronq.timing.durations import in_words
from cronq.timing.jitter import jitter
from cronq.timing.zones import Zone, zone

MOST_NOTED = 3
MOVED_WITHIN = timedelta(days=15)


class Upcoming(NamedTuple):
    """One fire time: in UTC, on the clocks of the timing's zone, and what is special about it."""

    fire_time: datetime
    local: datetime
    note: str | None

    def to_data(self) -> dict[str, Any]:
        """Return it as `cronq next --json` prints it."""
        return {"fire_time": iso(self.fire_time), "local": self.local.isoformat(), "note": self.note}


def upcoming(
    timing: Timing, after: datetime, count: int, *, spread: timedelta = timedelta(0), schedule_id: str = ""
) -> Iterator[Upcoming]:
    """Yield the next `count` fire times strictly after `after` (aware), with their notes."""
    there, before = zone(tz_of(timing)), after
    fire = timing.next(after)
    for _ in range(count):
        if fire is None:
            return
        following = timing.next(fire)
        notes = [*_clock_notes(there, before, fire), *_omission_notes(timing, there, before, fire)]
        if spread:
            notes.append(f"jitter +{_rounded(jitter(schedule_id, fire, spread, following))}")
        yield Upcoming(fire, fire.astimezone(there.info), "; ".join(notes) or None)
        before, fire = fire, following


def _clock_notes(there: Zone, before: datetime, fire: datetime) -> Iterator[str]:
    """Say that the clocks changed since the fire time before, and that this one stands for a gap."""
    second = int((fire - EPOCH).total_seconds())
    change = there.offset(second) - there.offset(int((before - EPOCH).total_seconds()))
    if change:
        yield f"clocks went {'forward' if change > 0 else 'back'} {in_words(timedelta(seconds=abs(change)))}"
    stretch = there.stretch(second)
    if stretch.start == second and stretch.first < stretch.real:
        skipped = EPOCH + timedelta(seconds=stretch.first)
        yield f"first instant after the gap from {skipped:%H:%M}"


def _omission_notes(timing: Timing, there: Zone, before: datetime, fire: datetime) -> Iterator[str]:
    """Say what did not fire since the fire time before, and what moved here."""
    omitted = [each for each in islice(omissions(timing, before, fire), MOST_NOTED + 1) if each.into is None]
    for each in omitted[:MOST_NOTED]:
        yield f"not at {_local(there, each.fire_time)} ({each.reason}{_detail(each)})"
    if len(omitted) > MOST_NOTED:
        yield "and more"
    around = omissions(timing, fire - MOVED_WITHIN, fire + MOVED_WITHIN) if timing.daily_bound() <= 24 else ()  # noqa: PLR2004
    for each in around:
        if each.into == fire:
            yield f"moved from {_local(there, each.fire_time)} ({each.reason}{_detail(each)})"


def _detail(omission: Omission) -> str:
    return "" if omission.detail is None else f": {omission.detail}"


def _local(there: Zone, instant: datetime) -> str:
    return instant.astimezone(there.info).isoformat()


def _rounded(span: timedelta) -> str:
    return f"{span.total_seconds():.3f}s"
