"""Reads a time as people type it: on the clocks of a zone, with or without the day."""

from datetime import UTC, datetime, tzinfo

from cronq.timing.errors import InvalidTiming

LONGEST_CLOCK = len("23:59:59")


def moment_on(zone: tzinfo, text: str, now: datetime) -> datetime:
    """Return the instant of `2026-11-21T02:30` or, on the day of `now`, of `02:30`; or with an offset.

    Raises InvalidTiming.
    """
    text = text.strip()
    try:
        if len(text) <= LONGEST_CLOCK and ":" in text:
            text = f"{now.astimezone(zone).date().isoformat()}T{text}"
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidTiming(
            "this is no time", field="time", text=text, suggestion="write 2026-11-21T02:30, or 02:30"
        ) from None
