"""Every fire time that passed while nobody led gets exactly one decision, with bounded work.

At most `limit` fire times, the newest, are decided one by one, walking back from `now`. Whatever is older
is decided in at most two `Fold`s, each of which says for a whole stretch of time what became of its fire
times. So a million missed fires cost as much as `limit` of them, and still "why did it not run?" has an
answer for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronq.schedule import CatchUp, Reason
from cronq.timing.base import MICROSECOND, Timing


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one fire time: it runs, or not, for a reason (`into`: what it was coalesced into)."""

    fire_time: datetime
    runs: bool
    reason: Reason | None = None
    into: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """All fire times f with `first` <= f <= `last` did not run, for one reason; both ends are fire times."""

    first: datetime
    last: datetime
    reason: Reason
    into: datetime | None = None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The decisions, oldest first; `folds` (oldest first) are older than all of them."""

    decisions: tuple[Decision, ...]
    folds: tuple[Fold, ...] = ()

    @property
    def runs(self) -> tuple[datetime, ...]:
        """The fire times that run, oldest first."""
        return tuple(each.fire_time for each in self.decisions if each.runs)


def catch_up(  # noqa: PLR0917 - every argument decides, and none is optional
    timing: Timing,
    cursor: datetime,
    now: datetime,
    policy: CatchUp,
    window: timedelta,
    limit: int,
    *,
    grace: timedelta = timedelta(0),
) -> CaughtUp:
    """Decide about every fire time f with cursor < f <= now.

    Older than `window`: missed. Within it, `policy` decides: none runs; the newest runs and the others are
    coalesced into it; or all run, of which the newest `limit` (1 or more) do and older ones are recorded as
    beyond the limit. A fire time at most `grace` old is not late: it runs under every policy.
    """
    listed = _newest(timing, cursor, now, limit)
    if not listed:
        return CaughtUp(())
    oldest_allowed, late = now - window, now - grace
    newest = listed[-1]
    decisions = tuple(_decide(fire, newest, policy, oldest_allowed, late) for fire in listed)
    first, last = timing.next(cursor), timing.previous(listed[0])
    if first is None or last is None or first > last:
        return CaughtUp(decisions)
    return CaughtUp(decisions, tuple(_folds(timing, (first, last), newest, policy, oldest_allowed)))


def _newest(timing: Timing, cursor: datetime, now: datetime, limit: int) -> list[datetime]:
    """Return the newest `limit` fire times in (cursor, now], oldest first."""
    found: list[datetime] = []
    fire = timing.previous(now + MICROSECOND)
    while fire is not None and fire > cursor and len(found) < max(limit, 1):
        found.append(fire)
        fire = timing.previous(fire)
    found.reverse()
    return found


def _decide(
    fire: datetime, newest: datetime, policy: CatchUp, oldest_allowed: datetime, late: datetime
) -> Decision:
    if fire >= late:
        return Decision(fire, runs=True)
    if fire < oldest_allowed or policy is CatchUp.SKIP:
        return Decision(fire, runs=False, reason=Reason.MISSED_WINDOW)
    if policy is CatchUp.ALL or fire == newest:
        return Decision(fire, runs=True)
    return Decision(fire, runs=False, reason=Reason.COALESCED, into=newest)


def _folds(
    timing: Timing, older: tuple[datetime, datetime], newest: datetime, policy: CatchUp, allowed: datetime
) -> Iterator[Fold]:
    """Yield what became of the fire times from `older[0]` to `older[1]`, which are not decided one by one."""
    first, last = older
    if policy is CatchUp.SKIP or last < allowed:
        yield Fold(first, last, Reason.MISSED_WINDOW)
        return
    if first < allowed:
        missed = timing.previous(allowed) or first
        yield Fold(first, missed, Reason.MISSED_WINDOW)
        first = timing.next(missed) or last
    if policy is CatchUp.LATEST:
        yield Fold(first, last, Reason.COALESCED, newest)
    else:
        yield Fold(first, last, Reason.LIMIT_REACHED)
