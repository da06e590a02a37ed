"""An iCalendar file (RFC 5545) becomes a calendar: each event closes its days, or its span of time."""

import re
from datetime import UTC, date, datetime, timedelta

from cronq.timing.base import EPOCH
from cronq.timing.calendars import Calendar
from cronq.timing.dst import instant_of
from cronq.timing.errors import InvalidTiming
from cronq.timing.rrule import RRule
from cronq.timing.rules import seconds
from cronq.timing.zones import zone

LONGEST = 2_000_000
MOST_DAYS = 20_000
STAMP = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z?))?", re.ASCII)


FAR = date(2100, 1, 1)


def calendar_from_ics(name: str, text: str, *, tz: str = "UTC", until: date = FAR) -> Calendar:
    """Return the calendar `name` of the events in `text`; those that repeat are written out to `until`.

    All-day events close whole days; others close [DTSTART, DTEND), read in `tz` when they carry no zone.
    Events marked TRANSPARENT or CANCELLED close nothing. Raises InvalidTiming.
    """
    if len(text) > LONGEST:
        raise InvalidTiming("the file is too long", field="ics", suggestion=f"at most {LONGEST} characters")
    days: list[tuple[date, date]] = []
    spans: list[tuple[datetime, datetime]] = []
    for event in _events(text):
        if (
            event.get("TRANSP", ("", ""))[1] == "TRANSPARENT"
            or event.get("STATUS", ("", ""))[1] == "CANCELLED"
        ):
            continue
        for start, end, whole in _occurrences(event, until):
            if whole:
                days.append((start.date(), end.date() - timedelta(days=1)))
            else:
                spans.append((_instant(start, event, tz), _instant(end, event, tz)))
        if len(days) + len(spans) > MOST_DAYS:
            raise InvalidTiming("there are too many events", field="ics", suggestion=f"at most {MOST_DAYS}")
    return Calendar(name, tuple(days), tuple(spans))


def _events(text: str) -> list[dict[str, tuple[str, str]]]:
    """Return the properties of each event: name → (parameters, value)."""
    events: list[dict[str, tuple[str, str]]] = []
    inside = False
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        head, _, value = line.strip().partition(":")
        name, _, parameters = head.upper().partition(";")
        if name == "BEGIN":
            inside = value.upper() == "VEVENT"
            if inside:
                events.append({})
        elif name == "END":
            inside = False
        elif inside:
            raw = head.partition(";")[2]
            events[-1].setdefault(name, (raw if name.startswith("DT") else parameters, value))
    return events


def _occurrences(event: dict[str, tuple[str, str]], until: date) -> list[tuple[datetime, datetime, bool]]:
    """Return (start, end, whole days?) of every occurrence, as wall times."""
    if "DTSTART" not in event:
        raise InvalidTiming(
            "an event has no start", field="DTSTART", suggestion="write DTSTART;VALUE=DATE:20261225"
        )
    start, whole = _stamp(event["DTSTART"][1])
    end = _stamp(event["DTEND"][1])[0] if "DTEND" in event else start + timedelta(days=1 if whole else 0)
    if end <= start:
        end = start + (timedelta(days=1) if whole else timedelta(hours=1))
    if "RRULE" not in event:
        return [(start, end, whole)]
    rule = RRule(f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{event['RRULE'][1]}")
    limit = datetime(until.year, until.month, until.day, tzinfo=UTC)
    fire = rule.next(start.replace(tzinfo=UTC) - timedelta(seconds=1))
    found: list[tuple[datetime, datetime, bool]] = []
    while fire is not None and fire < limit and len(found) <= MOST_DAYS:
        begins = fire.replace(tzinfo=None)
        found.append((begins, begins + (end - start), whole))
        fire = rule.next(fire)
    return found


def _stamp(value: str) -> tuple[datetime, bool]:
    found = STAMP.fullmatch(value.strip())
    if found is None:
        raise InvalidTiming(
            "this is no iCalendar date", field="ics", text=value[:40], suggestion="write 20261225"
        )
    try:
        return datetime.strptime(found[1] + (found[2] or "000000"), "%Y%m%d%H%M%S"), not found[2]  # noqa: DTZ007
    except ValueError:
        raise InvalidTiming(
            "there is no such day", field="ics", text=value[:40], suggestion="write 20261225"
        ) from None


def _instant(wall: datetime, event: dict[str, tuple[str, str]], tz: str) -> datetime:
    parameters, value = event["DTSTART"]
    if value.strip().endswith("Z"):
        return wall.replace(tzinfo=UTC)
    named = re.search(r"TZID=\"?([^;\"]+)", parameters, re.IGNORECASE)
    return EPOCH + timedelta(seconds=instant_of(seconds(wall), zone(named[1] if named else tz)))
