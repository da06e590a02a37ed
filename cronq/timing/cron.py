"""A cron expression in a time zone: right about every instant of it, DST included."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from cronq.schedule import Dst, Reason
from cronq.timing.base import EPOCH, Omission, fires_between, require_aware
from cronq.timing.dst import LocalFires
from cronq.timing.errors import InvalidTiming
from cronq.timing.expression import Expression, parse_expression
from cronq.timing.wall import NEVER, WallMatcher
from cronq.timing.zones import Zone, zone

MOST_EXPRESSIONS = 100


class Fires(Protocol):
    """Fire times in UTC seconds: the first not before, the last not after an instant."""

    def next(self, instant: int) -> int: ...  # noqa: D102
    def previous(self, instant: int) -> int: ...  # noqa: D102


class PeriodFires:
    """What `@every` means inside a cron expression: every so many seconds, counted from 1970."""

    __slots__ = ("_period",)

    def __init__(self, period: int) -> None:
        self._period = period

    def next(self, instant: int) -> int:
        """Return the first multiple of the period that is not before `instant`."""
        return -(-instant // self._period) * self._period

    def previous(self, instant: int) -> int:
        """Return the last multiple of the period that is not after `instant`."""
        return instant // self._period * self._period


@dataclass(frozen=True, slots=True)
class Cron:
    """One or several cron expressions (their union) in one time zone. Fire times fall on whole seconds.

    `day` says how day-of-month and day-of-week join: "or" is Vixie's rule, "and" asks for both. `hash_id` is
    the schedule's id, which `H` depends on; an expression with `H` may be declared without it, but not asked
    for times. Raises InvalidTiming.
    """

    expression: str | tuple[str, ...]
    tz: str = "UTC"
    dst: Dst = Dst.VIXIE
    day: Literal["or", "and"] = "or"
    hash_id: str | None = None
    _parts: tuple[Fires, ...] = field(init=False, repr=False, compare=False, default=())
    _parsed: tuple[Expression | timedelta, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        expression = self.expression
        texts = (expression,) if isinstance(expression, str) else tuple(expression)
        if not 0 < len(texts) <= MOST_EXPRESSIONS or self.day not in ("or", "and"):
            raise _wrong_shape(len(texts))
        there, policy = zone(self.tz), _policy(self.dst)
        parsed = tuple([parse_expression(text, self.day, self.hash_id) for text in texts])
        put = object.__setattr__
        if texts is not expression and not isinstance(expression, str):
            put(self, "expression", texts)
        put(self, "dst", policy)
        put(self, "_parsed", parsed)
        if self.hash_id is not None or not self.hashed:
            put(self, "_parts", tuple([_compile(each, there, policy) for each in parsed]))

    @property
    def hashed(self) -> bool:
        """Whether the fire times depend on `hash_id`."""
        return any(isinstance(each, Expression) and each.hashed for each in self._parsed)

    @property
    def parsed(self) -> tuple[Expression | timedelta, ...]:
        """The parsed expressions; an `@every` is its period."""
        return self._parsed

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after`, in UTC; None: never again."""
        try:
            since = after - EPOCH
        except TypeError:
            since = require_aware(after, "after") - EPOCH
        instant = since.days * 86400 + since.seconds + 1
        parts = self._parts
        if len(parts) == 1:
            found = parts[0].next(instant)
        else:
            self._require_hash()
            found = min([part.next(instant) for part in parts])
        return None if found >= NEVER else EPOCH + timedelta(0, found)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before`, in UTC; None: there was none."""
        since = require_aware(before, "before") - EPOCH
        instant = since.days * 86400 + since.seconds - (0 if since.microseconds else 1)
        self._require_hash()
        found = max([part.previous(instant) for part in self._parts])
        return None if found <= -NEVER else EPOCH + timedelta(0, found)

    def omitted(self, start: datetime, end: datetime) -> Iterator[Omission]:
        """Yield the instants in (start, end] at which the policy keeps a local time from running, and why.

        A repeated local time is named by its second copy, one in a gap by the first instant after the gap.
        """
        if self.dst not in (Dst.VIXIE, Dst.SKIP):
            return
        for fire in fires_between(replace(self, dst=Dst.BOTH), start, end):
            if self.next(fire - timedelta(seconds=1)) != fire:
                stretch = zone(self.tz).stretch(int((fire - EPOCH).total_seconds()))
                gap = stretch.first < stretch.real
                yield Omission(fire, Reason.DST_GAP if gap else Reason.DST_REPEAT, self.tz)

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""
        expression = self.expression if isinstance(self.expression, str) else list(self.expression)
        data: dict[str, Any] = {
            "kind": "cron",
            "expression": expression,
            "tz": self.tz,
            "dst": self.dst.value,
        }
        if self.day != "or":
            data["day"] = self.day
        if self.hash_id is not None:
            data["hash_id"] = self.hash_id
        return data

    def daily_bound(self) -> float:
        """Return how many fires one local day has at most."""
        total = 0.0
        for each in self._parsed:
            if isinstance(each, timedelta):
                total += timedelta(days=1) / each
            else:
                total += (
                    each.second.mask.bit_count() * each.minute.mask.bit_count() * each.hour.mask.bit_count()
                )
        return total

    def _require_hash(self) -> None:
        if not self._parts:
            raise InvalidTiming(
                "H needs the schedule's id", field="hash_id", text=str(self.expression),
                suggestion="declare it in a schedule, or pass hash_id",
            )  # fmt: skip


def _compile(parsed: Expression | timedelta, there: Zone, policy: Dst) -> Fires:
    if isinstance(parsed, timedelta):
        return PeriodFires(int(parsed.total_seconds()))
    matcher = WallMatcher(parsed.second.mask, parsed.minute.mask, parsed.hour.mask, parsed.days)
    return LocalFires(matcher, there, policy, parsed.interval)


def _policy(value: Dst | str) -> Dst:
    try:
        return Dst(value)
    except ValueError:
        names = ", ".join(Dst)
        raise InvalidTiming(
            "there is no such DST policy", field="dst", suggestion=f"write one of {names}", text=str(value)
        ) from None


def _wrong_shape(count: int) -> InvalidTiming:
    if 0 < count <= MOST_EXPRESSIONS:
        return InvalidTiming("the day fields join by or / and", field="day", suggestion="write 'or' or 'and'")
    return InvalidTiming(
        f"{count} expressions were given", field="expression", suggestion=f"write 1 to {MOST_EXPRESSIONS}"
    )
