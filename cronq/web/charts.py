"""Small pictures as SVG: drawn from plain attributes, so that no style has to be allowed inline."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from cronq.views import iso
from cronq.web.format import NAMES

BAR: Final = 6
GAP: Final = 2
HEIGHT: Final = 24
LOWEST: Final = 4

_RECT: Final = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1"><title>{}</title></rect>')
_SVG: Final = Markup(
    '<svg class="spark" role="img" aria-label="last {}: {}" width="{}" height="{}" '
    'viewBox="0 0 {} {}">{}</svg>'
)


def sparkline(rows: Sequence[Any]) -> Markup:
    """Return the last outcomes as bars: the height is the duration, the colour the outcome."""
    if not rows:
        return Markup('<span class="none">nothing yet</span>')
    durations = [_duration(row) for row in rows]
    longest = max(durations) or 1.0
    bars = []
    for place, (row, seconds) in enumerate(zip(rows, durations, strict=True)):
        height = max(LOWEST, round(HEIGHT * seconds / longest))
        x = place * (BAR + GAP)
        title = " ".join(filter(None, [NAMES[row["state"]], row["reason"], iso(row["fire_time"])]))
        kind = row["state"].lower().replace("_", "-")
        bars.append(_RECT.format(kind, x, HEIGHT - height, BAR, height, title))
    said = ", ".join(f"{n} {NAMES[state]}" for state, n in Counter(row["state"] for row in rows).items())
    width = len(rows) * (BAR + GAP)
    return _SVG.format(len(rows), said, width, HEIGHT, width, HEIGHT, Markup("").join(bars))


def _duration(row: Any) -> float:  # noqa: ANN401 - a row of the job table
    if row["started_at"] is None or row["finished_at"] is None:
        return 0.0
    return float((row["finished_at"] - row["started_at"]).total_seconds())
