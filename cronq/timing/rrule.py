"""A recurrence rule (RFC 5545) in a time zone. Rules of hours or less are interval-like at a DST change.

python-dateutil evaluates the rule on the wall clock; cronq starts it close to the instant asked about instead
of at DTSTART (every part that DTSTART implies is written out first), bounds how far it may search, and turns
wall times into instants as it does for cron. Fire times fall on whole seconds.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cronq.schedule import Dst
from cronq.timing.base import EPOCH, require_aware
from cronq.timing.day_rules import DayRule, SubDayRule
from cronq.timing.dst import LocalFires
from cronq.timing.errors import InvalidTiming
from cronq.timing.month_rules import MonthRule
from cronq.timing.rule_text import ANCHOR, Lines, read_lines, refused, rule_options, stamp, to_wall
from cronq.timing.rules import Counted, DatedRules, Ruled, WallRule
from cronq.timing.wall import NEVER
from cronq.timing.zones import zone


@dataclass(frozen=True, slots=True)
class RRule:
    """The RRULE, RDATE and EXDATE lines of `text` (or a bare `FREQ=…`), read on the clocks of `tz`.

    Without a DTSTART, rules count from 1970-01-01 00:00. A DTSTART with a TZID sets `tz`.
    """

    text: str
    tz: str = "UTC"
    dst: Dst = Dst.VIXIE
    _parts: tuple[LocalFires, ...] = field(init=False, repr=False, compare=False, default=())
    _bound: float = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        lines = read_lines(self.text)
        put = object.__setattr__
        if lines.tz is not None:
            if self.tz not in ("UTC", lines.tz):
                raise refused(
                    f"the rule is in {lines.tz}, not in {self.tz}", self.text, "say one of them", "TZID"
                )
            put(self, "tz", lines.tz)
        there = zone(self.tz)
        try:
            put(self, "dst", Dst(self.dst))
        except ValueError:
            raise InvalidTiming("there is no such DST policy", field="dst", text=str(self.dst),
                                suggestion=f"write one of {', '.join(Dst)}") from None  # fmt: skip
        rules = _rules(self.text, lines, there.offset)
        put(self, "_parts", tuple(LocalFires(each, there, self.dst, each.interval) for each in rules))
        put(self, "_bound", sum(each.daily for each in rules))
        if self.next(datetime.min.replace(tzinfo=EPOCH.tzinfo, year=1969)) is None:
            raise refused(
                "this rule never fires", self.text, "write dates that come, and an UNTIL after the start"
            )

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after`, in UTC; None: never again."""
        since = require_aware(after, "after") - EPOCH
        instant = since.days * 86400 + since.seconds + 1
        found = min(part.next(instant) for part in self._parts)
        return None if found >= NEVER else EPOCH + timedelta(0, found)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before`, in UTC; None: there was none."""
        since = require_aware(before, "before") - EPOCH
        instant = since.days * 86400 + since.seconds - (0 if since.microseconds else 1)
        found = max(part.previous(instant) for part in self._parts)
        return None if found <= -NEVER else EPOCH + timedelta(0, found)

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        return {"kind": "rrule", "text": self.text, "tz": self.tz, "dst": self.dst.value}

    def daily_bound(self) -> float:
        """Return how many fires one local day has at most."""
        return self._bound


KINDS: dict[str, type[Ruled]] = {
    "YEARLY": MonthRule,
    "MONTHLY": MonthRule,
    "WEEKLY": DayRule,
    "DAILY": DayRule,
    "HOURLY": SubDayRule,
    "MINUTELY": SubDayRule,
    "SECONDLY": SubDayRule,
}


def _rules(text: str, lines: Lines, offset_of: Any) -> list[WallRule]:  # noqa: ANN401
    """Return one wall-clock matcher per rule, and one for the added dates."""
    start = None if lines.start is None else to_wall(*stamp(lines.start, text), offset_of)
    removed = frozenset(_seconds(to_wall(*stamp(each, text), offset_of)) for each in lines.removed)
    rules: list[WallRule] = []
    for rule in lines.rules:
        parts = rule_options(rule, text, start)
        until = None if "UNTIL" not in parts else to_wall(*stamp(parts["UNTIL"], text), offset_of)
        built: WallRule
        try:
            counted = "COUNT" in parts
            built = KINDS[parts["FREQ"]](rule, start or ANCHOR, until, frozenset() if counted else removed)
        except ValueError as error:
            raise refused(f"the rule is wrong ({error})", text, "leave out what contradicts", rule) from None
        rules.append(Counted(built, int(parts["COUNT"]), removed) if counted else built)
    added = sorted({_seconds(to_wall(*stamp(each, text), offset_of)) for each in lines.added} - removed)
    return [*rules, DatedRules(tuple(added))] if added else rules


def _seconds(wall: datetime) -> int:
    since = wall - ANCHOR
    return since.days * 86400 + since.seconds
