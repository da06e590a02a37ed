"""Jitter is the same whoever computes it, evenly spread, and never reaches the next fire."""

from datetime import datetime, timedelta
from hashlib import blake2b

from cronq.timing.base import EPOCH, microseconds

BITS = 64


def jitter(schedule_id: str, fire_time: datetime, spread: timedelta, next_fire: datetime | None) -> timedelta:
    """Return the delay of this fire time: from 0 to below `spread` and below the gap to `next_fire`."""
    room = spread if next_fire is None else min(spread, next_fire - fire_time)
    return _share(f"jitter\0{schedule_id}\0{microseconds(fire_time - EPOCH)}", room)


def group_offset(schedule_id: str, spread: timedelta) -> timedelta:
    """Return one schedule's constant place within a group's `spread`; it keeps its period."""
    return _share(f"group\0{schedule_id}", spread)


def _share(key: str, room: timedelta) -> timedelta:
    """Return an even, repeatable part of `room`, in whole microseconds, below all of it."""
    number = int.from_bytes(blake2b(key.encode(), digest_size=BITS // 8).digest(), "big")
    return timedelta(microseconds=max(microseconds(room), 0) * number >> BITS)
