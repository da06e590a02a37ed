"""A length of time in words: "90s", "1h30m", "500ms" becomes a timedelta, or a refusal that says where."""

import re
from datetime import timedelta

from cronq.timing.errors import InvalidTiming

UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
PART = re.compile(r"([0-9]{1,12})(\.[0-9]{1,6})?(ms|us|[wdhms])", re.IGNORECASE | re.ASCII)
EXAMPLE = "write a length of time such as 90s, 15m or 1h30m"
LONGEST = timedelta(days=36525)


def duration(text: str, field: str = "period", *, offset: int = 0, whole: str | None = None) -> timedelta:
    """Return the length of time that `text` names: numbers with units w d h m s ms us, summed.

    `whole` and `offset` say where `text` stands in a longer text, for the message. Raises InvalidTiming.
    """
    total, at = timedelta(0), 0
    source = text if whole is None else whole
    while at < len(text):
        part = PART.match(text, at)
        if part is None:
            raise InvalidTiming(
                f"{text[at : at + 12]!r} is no length of time",
                field=field, suggestion=EXAMPLE, text=source, position=offset + at + 1,
            )  # fmt: skip
        unit = UNITS[part[3].lower()]
        number = float(part[1] + (part[2] or "")) if part[2] else int(part[1])
        if number * (unit / LONGEST) > 1:
            raise InvalidTiming(
                "this is longer than a century",
                field=field,
                suggestion=EXAMPLE,
                text=source,
                position=offset + 1,
            )
        total += unit * number
        at = part.end()
    if total <= timedelta(0):
        raise InvalidTiming(
            "a length of time must be more than nothing", field=field, suggestion=EXAMPLE, text=source,
            position=offset + 1,
        )  # fmt: skip
    return total


def in_words(span: timedelta) -> str:
    """Return `span` as `duration` reads it: "1h30m"."""
    parts, rest = [], span
    for unit, length in UNITS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
