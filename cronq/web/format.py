"""How values read on the page: every time with its zone, every length in a unit that fits."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from markupsafe import Markup

from cronq.job import ENDS, State
from cronq.views import iso, to_json

NAMES: Final = {
    "SCHEDULED": "planned",
    "PENDING": "waiting",
    "RUNNING": "running",
    "RETRYING": "retrying",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "SKIPPED": "skipped",
    "CANCELLED": "cancelled",
    "to_come": "to come",
    "undecided": "undecided",
    "none": "no record",
}
"""Each state and disposition in a word."""

MINUTE, HOUR, DAY = 60, 3600, 86400


def moment(value: datetime | None, zone: str | None = None) -> Markup:
    """Return a time element; the page's script shows it in the viewer's zone, unless `zone` is given."""
    if value is None:
        return Markup('<span class="none">—</span>')
    if zone is not None:
        there = value.astimezone(zone_of(zone))
        text = f"{there:%Y-%m-%d %H:%M:%S} {offset_of(there)} {zone}"
        return Markup('<time class="fixed" datetime="{}">{}</time>').format(iso(value), text)
    text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(value), text, text)


def relative(value: datetime | None) -> Markup:
    """Return a time element that the script turns into "in 12 s" and keeps so."""
    if value is None:
        return Markup('<span class="none">—</span>')
    text = f"{value.astimezone(UTC):%H:%M:%S} UTC"
    return Markup('<time data-relative datetime="{}" title="{}">{}</time>').format(iso(value), text, text)


def span(value: timedelta | float | None) -> str:
    """Return a length of time with two figures that matter: `3 ms`, `1.2 s`, `4 min 5 s`."""
    if value is None:
        return "—"
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{sign}{seconds:.1f} s"
    if seconds < HOUR:
        return f"{sign}{seconds // MINUTE:.0f} min {seconds % MINUTE:.0f} s"
    if seconds < DAY:
        return f"{sign}{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
    return f"{sign}{seconds // DAY:.0f} d {seconds % DAY // HOUR:.0f} h"


def chip(state: str) -> Markup:
    """Return a state as a word with a mark; its colour says nothing that the word does not."""
    return Markup('<span class="chip {}">{}</span>').format(state.lower().replace("_", "-"), NAMES[state])


def zone_of(name: str) -> ZoneInfo:
    """Return the zone called `name`, or UTC if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def offset_of(value: datetime) -> str:
    """Return the offset of `value` as `+01:00`."""
    text = value.strftime("%z")
    return f"{text[:3]}:{text[3:]}"


def data(value: Any) -> str:  # noqa: ANN401
    """Return a value as readable JSON."""
    return to_json(value, indent=2)


def ticks(text: str) -> Markup:
    """Return `text` with what stands between backticks as code."""
    pieces = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else Markup("{}").format(piece)
        for place, piece in enumerate(pieces)
    )


def over(state: str) -> bool:
    """Tell whether `state` is an end."""
    return State(state) in ENDS
