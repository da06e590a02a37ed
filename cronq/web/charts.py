"""Small pictures as SVG: drawn from plain attributes, so that no style has to be allowed inline."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from statistics import median
from typing import Any, Final

from markupsafe import Markup

from cronq.timing.load import Load
from cronq.views import iso
from cronq.web.format import NAMES, span
from cronq.web.punctuality import took

BAR: Final = 6
GAP: Final = 2
HEIGHT: Final = 24
LOWEST: Final = 4
CHART_HEIGHT: Final = 110
LEVELS: Final = 5
HOURS: Final = 24
MINUTES: Final = 60
SQUARE: Final = 11
LEFT: Final = 34
HEAD: Final = 14

Row = Mapping[Any, Any]

_RECT: Final = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1"><title>{}</title></rect>')
_SVG: Final = Markup('<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {} {}"{}>{}</svg>')
_CLOCK: Final = Markup('<text{} x="{}" y="{}">{}</text>')


def sparkline(rows: Sequence[Row]) -> Markup:
    """Return the last outcomes as bars: the height is the duration, the colour the outcome."""
    if not rows:
        return Markup('<span class="none">nothing yet</span>')
    said = ", ".join(f"{n} {NAMES[state]}" for state, n in Counter(row["state"] for row in rows).items())
    width = len(rows) * (BAR + GAP)
    bars = _bars(rows, lambda row: took(row) or 0.0, HEIGHT)
    sized = Markup(' width="{}" height="{}"').format(width, HEIGHT)
    return _SVG.format("spark", f"last {len(rows)}: {said}", width, HEIGHT, sized, bars)


def chart(rows: Sequence[Row], value: Callable[[Row], float | None], what: str) -> Markup:
    """Return `value` (seconds) of each of `rows`, oldest first, as bars with a line at the median."""
    known = [value(row) for row in rows]
    given = [(row, seconds) for row, seconds in zip(rows, known, strict=True) if seconds is not None]
    if not given:
        return Markup('<p class="empty">Nothing to measure yet.</p>')
    values = [seconds for _, seconds in given]
    top, middle = max(*values, 1e-9, 0.0), median(values)
    bars = _bars([row for row, _ in given], lambda row: value(row) or 0.0, CHART_HEIGHT)
    y = round(CHART_HEIGHT - CHART_HEIGHT * max(middle, 0.0) / top, 1)
    width = len(given) * (BAR + GAP)
    line = Markup('<line x1="0" x2="{}" y1="{}" y2="{}"/>').format(width, y, y)
    said = f"{what}: half within {span(middle)}, at most {span(top)}, over {len(given)} jobs"
    stretch = Markup(' preserveAspectRatio="none"')
    drawn = _SVG.format("spark chart", said, width, CHART_HEIGHT, stretch, bars + line)
    caption = Markup('<figcaption>{} <span class="soft">half within {}, at most {}</span></figcaption>')
    return Markup("<figure>{}{}</figure>").format(caption.format(what, span(middle), span(top)), drawn)


def heat_map(load: Load) -> Markup:
    """Return a day's load: a line for each hour, a square for each minute, stronger where more starts."""
    most, least = max(load.per_minute), min(load.per_minute)
    parts = [
        _CLOCK.format("", LEFT + minute * SQUARE, HEAD - 4, f":{minute:02}")
        for minute in range(0, MINUTES, 10)
    ]
    for hour in range(HOURS):
        at, y = iso(load.start + timedelta(hours=hour)), HEAD + hour * SQUARE
        parts.append(_CLOCK.format(f" data-clock={at}", 0, y + SQUARE - 2, at[11:16]))
        parts.append(_RECT.format("none", LEFT, y, MINUTES * SQUARE - 1, SQUARE - 1, f"from {at[11:16]} UTC"))
        for minute in range(MINUTES):
            fires = load.per_minute[hour * MINUTES + minute]
            if fires:
                when = load.start + timedelta(hours=hour, minutes=minute)
                place = (LEFT + minute * SQUARE, y, SQUARE - 1, SQUARE - 1)
                level = f"level-{_level(fires, least, most)}"
                parts.append(_RECT.format(level, *place, f"{when:%H:%M} UTC: {fires}"))
    said = f"jobs in each minute of 24 hours: {sum(load.per_minute)} in all, at most {most} in one"
    return _SVG.format(
        "heat", said, LEFT + MINUTES * SQUARE, HEAD + HOURS * SQUARE, "", Markup("").join(parts)
    )


def _level(fires: int, least: int, most: int) -> int:
    """Return 1 for the quietest minute that is not empty, and `LEVELS` for the busiest."""
    low = max(least, 1)
    return LEVELS if most == low else 1 + (fires - low) * (LEVELS - 1) // (most - low)


def _bars(rows: Sequence[Row], value: Callable[[Row], float], height: int) -> Markup:
    values = [max(0.0, value(row)) for row in rows]
    longest = max(values) or 1.0
    bars = []
    for place, (row, seconds) in enumerate(zip(rows, values, strict=True)):
        tall = max(LOWEST, round(height * seconds / longest))
        title = " ".join(
            filter(None, [NAMES[row["state"]], row["reason"], iso(row["fire_time"]), span(seconds)])
        )
        kind = row["state"].lower().replace("_", "-")
        bars.append(_RECT.format(kind, place * (BAR + GAP), height - tall, BAR, tall, title))
    return Markup("").join(bars)
