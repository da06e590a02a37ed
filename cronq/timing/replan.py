"""Compares planned fire times with those of today, after an edit or an update of the zone data."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from cronq.timing.base import MICROSECOND, Timing, fires_between, require_aware
from cronq.timing.zones import zone_data_version as zone_data_version  # noqa: PLC0414 - asked for with `moved`


class Moved(NamedTuple):
    """Fire times that are no longer due, and those that were not due before; both oldest first."""

    gone: tuple[datetime, ...]
    new: tuple[datetime, ...]

    def __bool__(self) -> bool:
        return bool(self.gone or self.new)


def moved(timing: Timing, planned: Iterable[datetime], start: datetime, end: datetime) -> Moved:
    """Compare the fire times that were planned for [start, end] with those that `timing` names there today.

    Store `zone_data_version()` with what you plan: when it differs, ask this function before planning on.
    """
    before = {require_aware(each, "planned") for each in planned if start <= each <= end}
    today = set(fires_between(timing, start - MICROSECOND, end))
    return Moved(tuple(sorted(before - today)), tuple(sorted(today - before)))
