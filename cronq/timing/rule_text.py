"""The text of a recurrence rule (RFC 5545) is checked before python-dateutil sees it, which trusts too much.

dateutil searches until the year 9999 for a rule that never matches; such rules, and those that would cost
without bound, are refused here, with the part that is wrong and what to write instead.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dateutil.rrule import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, WEEKLY, YEARLY, rrulestr

from cronq.timing.errors import InvalidTiming

FREQUENCIES = {
    "YEARLY": YEARLY,
    "MONTHLY": MONTHLY,
    "WEEKLY": WEEKLY,
    "DAILY": DAILY,
    "HOURLY": HOURLY,
    "MINUTELY": MINUTELY,
    "SECONDLY": SECONDLY,
}
UNITS = {HOURLY: 3600, MINUTELY: 60, SECONDLY: 1}
PARTS = {
    "FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYSETPOS", "BYMONTH", "BYMONTHDAY", "BYYEARDAY",
    "BYWEEKNO",
    "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND",
}  # fmt: skip
NOT_BELOW_A_MONTH = ("BYSETPOS", "BYWEEKNO")
LONGEST = 4096
MOST_COUNTED = 1000
MOST_INTERVAL = 1000
MOST_DATES = 1000
STAMP = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z?))?", re.ASCII)
ANCHOR = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EXAMPLE = "write FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0"


@dataclass(frozen=True)
class Lines:
    """What a recurrence text says: rules, added and removed stamps, the start and its zone."""

    rules: tuple[str, ...]
    start: str | None
    tz: str | None
    added: tuple[str, ...]
    removed: tuple[str, ...]


def read_lines(text: str) -> Lines:
    """Split `text` into its properties; raises InvalidTiming."""
    if not isinstance(text, str) or len(text) > LONGEST or not text.isascii():
        raise refused(
            "a recurrence rule is plain text", str(text), f"write at most {LONGEST} ASCII characters"
        )
    rules: list[str] = []
    dates: dict[str, list[str]] = {"RDATE": [], "EXDATE": []}
    start = tz = None
    for line in re.sub(r"\r?\n[ \t]", "", text.strip()).upper().split():
        name, colon, value = line.partition(":")
        head, *parameters = name.split(";") if colon else ("RRULE",)
        if not colon:
            value = line
        if head == "RRULE":
            rules.append(value)
        elif head == "DTSTART":
            start, tz = value, _zone_of(parameters, text) or tz
        elif head in dates:
            dates[head].extend(value.split(","))
        else:
            raise refused(
                f"{head[:20]} is not understood", text, "write DTSTART, RRULE, RDATE and EXDATE", head
            )
    if not rules and not dates["RDATE"]:
        raise refused("there is no rule", text, EXAMPLE)
    if len(rules) > 10 or sum(map(len, dates.values())) > MOST_DATES:  # noqa: PLR2004
        raise refused("there are too many rules or dates", text, f"write at most 10 and {MOST_DATES}")
    return Lines(tuple(rules), start, tz, tuple(dates["RDATE"]), tuple(dates["EXDATE"]))


def _zone_of(parameters: list[str], text: str) -> str | None:
    """Return the TZID among `parameters`, in the case in which it was written."""
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key == "TZID" and (at := text.upper().find(value)) >= 0:
            return text[at : at + len(value)]
    return None


def stamp(value: str, text: str) -> tuple[datetime, bool]:
    """Return the date-time that `value` (20261024T023000 or …Z, or a date) writes, and whether it is UTC."""
    found = STAMP.fullmatch(value)
    try:
        if found is None:
            raise ValueError(value)  # noqa: TRY301 - one refusal for both
        moment = datetime.strptime(found[1] + (found[2] or "000000"), "%Y%m%d%H%M%S")  # noqa: DTZ007
    except ValueError:
        raise refused(f"{value[:20]!r} is no date-time", text, "write 20261024T023000", value) from None
    return moment, bool(found[3])


def rule_options(rule: str, text: str, start: datetime | None) -> dict[str, Any]:
    """Return the parts of one rule by name, checked; `start` is None when the text has no DTSTART."""
    parts: dict[str, Any] = {}
    for part in rule.split(";"):
        key, equals, value = part.partition("=")
        if not equals or key not in PARTS or key in parts or not value:
            raise refused(
                f"{part[:20]!r} is no part of a rule", text, f"write {', '.join(sorted(PARTS))}", part
            )
        parts[key] = value
    if parts.get("FREQ") not in FREQUENCIES:
        raise refused(
            "FREQ says how often", text, f"write FREQ={'|'.join(FREQUENCIES)}", parts.get("FREQ", "")
        )
    _check_numbers(parts, text)
    _check_shape(parts, text, start)
    try:
        rrulestr(rule.replace(f"UNTIL={parts.get('UNTIL')}", "INTERVAL=1"), dtstart=start or ANCHOR)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise refused(f"the rule is wrong ({error})", text, EXAMPLE, rule) from None
    return parts


def _check_numbers(parts: dict[str, Any], text: str) -> None:
    for key, most in (("INTERVAL", MOST_INTERVAL), ("COUNT", MOST_COUNTED)):
        value = parts.get(key, "1")
        if not value.isdigit() or len(value) > 9 or not 0 < int(value) <= most:  # noqa: PLR2004 - digits
            raise refused(f"{key} is a number from 1 to {most}", text, f"write {key}=1 or more", value)
    months, days = parts.get("BYMONTH"), parts.get("BYMONTHDAY")
    if months and days and re.fullmatch(r"[0-9,]+", months) and re.fullmatch(r"[-+0-9,]+", days):
        longest = max(
            (LENGTHS[int(m) - 1] for m in months.split(",") if m and 0 < int(m) <= len(LENGTHS)), default=31
        )
        if all(abs(int(day)) > longest for day in days.split(",") if day.strip("+-")):
            raise refused("this day never comes in these months", text, "write a day the month has", days)


def _check_shape(parts: dict[str, Any], text: str, start: datetime | None) -> None:
    frequency = FREQUENCIES[parts["FREQ"]]
    unit = UNITS.get(frequency)
    if start is None and "COUNT" in parts:
        raise refused(
            "COUNT needs a start to count from", text, "write DTSTART:20260101T000000 first", "COUNT"
        )
    if start is None and frequency == WEEKLY and not {"BYDAY", "BYMONTHDAY", "BYYEARDAY"} & set(parts):
        raise refused("WEEKLY needs a weekday", text, "write BYDAY=MO, or a DTSTART", "WEEKLY")
    if frequency > MONTHLY and re.search("[0-9]", parts.get("BYDAY", "")):
        raise refused(
            "a numbered weekday needs a month or a year", text, "write FREQ=MONTHLY", parts["BYDAY"]
        )
    if frequency <= MONTHLY:
        return
    for key in NOT_BELOW_A_MONTH:
        if key in parts:
            raise refused(f"{key} needs a rule of months or years", text, "write FREQ=MONTHLY or YEARLY", key)
    if unit is not None and int(parts.get("INTERVAL", "1")) * unit > timedelta(days=1).total_seconds():
        raise refused("the interval is longer than a day", text, "write FREQ=DAILY with BYHOUR", "INTERVAL")


def refused(problem: str, text: str, suggestion: str, part: str = "") -> InvalidTiming:
    """Return the refusal of `text`, at the place where `part` stands in it."""
    at = text.upper().find(part) if part else 0
    return InvalidTiming(
        problem, field="rrule", text=text, position=at + 1 if at >= 0 else None, suggestion=suggestion
    )


def to_wall(moment: datetime, utc: bool, offset_of: Any) -> datetime:  # noqa: ANN401
    """Return the wall time of `moment` (naive); `offset_of(instant)` is the zone's offset in seconds."""
    if not utc:
        return moment
    return moment + timedelta(seconds=offset_of(int(moment.replace(tzinfo=UTC).timestamp())))
