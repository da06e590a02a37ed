"""What every kind of timing can do, and the arithmetic of instants they share: aware in, aware UTC out."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, runtime_checkable

from cronq.schedule import Reason
from cronq.timing.errors import InvalidTiming

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@runtime_checkable
class Timing(Protocol):
    """When something is due. Every kind is a frozen, hashable dataclass, and pure."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after `after` (aware), in UTC; None: never again."""

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before `before` (aware), in UTC; None: there was none."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON-able data from which `timing_from` builds an equal timing."""

    def __hash__(self) -> int: ...  # equal timings share caches

    def daily_bound(self) -> float:
        """Return a number of fires per day that this timing never exceeds by far (it may be inf)."""


def fires_between(
    timing: Timing, start: datetime, end: datetime, limit: int | None = None
) -> Iterator[datetime]:
    """Yield the fire times f with start < f <= end, oldest first, at most `limit` of them."""
    fire, count = timing.next(start), 0
    while fire is not None and fire <= end and (limit is None or count < limit):
        yield fire
        fire, count = timing.next(fire), count + 1


class Omission(NamedTuple):
    """An instant at which a timing would fire but for a rule of its own, and where it went instead."""

    fire_time: datetime
    reason: Reason
    detail: str | None = None
    into: datetime | None = None


def omissions(timing: Timing, start: datetime, end: datetime) -> Iterator[Omission]:
    """Yield what `timing` leaves out in (start, end] by its DST policy or calendar, in no certain order."""
    omitted: Callable[[datetime, datetime], Iterator[Omission]] | None = getattr(timing, "omitted", None)
    return iter(()) if omitted is None else omitted(start, end)


def require_aware(instant: datetime, field: str) -> datetime:
    """Return `instant` in UTC; a naive one is refused, because it names a different instant in every zone."""
    if instant.tzinfo is None:
        raise InvalidTiming(
            "the instant has no offset", field=field, suggestion="write one, as in 2026-10-24T00:30:00Z",
            text=instant.isoformat(),
        )  # fmt: skip
    return instant.astimezone(UTC)


def iso(instant: datetime) -> str:
    """Return `instant` as ISO 8601 in UTC with a Z: "2026-10-25T00:30:00Z"."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def instant_from(text: object, field: str) -> datetime:
    """Return the instant that an ISO 8601 text with an offset names, in UTC; raises InvalidTiming."""
    if not isinstance(text, str):
        raise InvalidTiming("the instant is not a text", field=field, suggestion="write ISO 8601")
    try:
        return require_aware(datetime.fromisoformat(text), field)
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidTiming):
            raise
        raise InvalidTiming(
            "this is no ISO 8601 instant",
            field=field,
            suggestion="write one as 2026-10-24T00:30:00Z",
            text=text,
        ) from None


def microseconds(span: timedelta) -> int:
    """Return `span` in whole microseconds, exactly."""
    return (span.days * 86400 + span.seconds) * 1_000_000 + span.microseconds
