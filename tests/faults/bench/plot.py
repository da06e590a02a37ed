"""Draws how late bodies started over the time of a run, with the faults marked: one SVG, by hand.

Each second's worst and median lateness; the scale is logarithmic, from 10 ms to a minute.
"""

import math
from collections import defaultdict
from html import escape
from statistics import median

from tests.faults.bench.run import Run

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1200, 420, 56, 22, 46
LEAST_S, MOST_S = 0.01, 60.0
GRID_S = (0.01, 0.1, 1.0, 10.0, 60.0)
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #444 }
  .worst { fill: none; stroke: #c2410c; stroke-width: 1.2 }
  .median { fill: none; stroke: #1d4ed8; stroke-width: 1.2 }
  .grid { stroke: #ddd } .fault { fill: #f59e0b; opacity: .22 } .number { font-size: 10px; fill: #92400e }
  @media (prefers-color-scheme: dark) {
    text { fill: #bbb } .grid { stroke: #444 } .worst { stroke: #fb923c } .median { stroke: #93c5fd }
    .number { fill: #fbbf24 }
  }
"""


def draw(run: Run) -> str:
    """Return the plot of one run as SVG."""
    seconds: dict[int, list[float]] = defaultdict(list)
    for due, by in run.verdict.lateness:
        seconds[int(due - run.began)].append(max(by, LEAST_S))
    span = max(run.until - run.began, 1.0)

    def x(second: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 10) * second / span, 1)

    def y(late: float) -> float:
        part = math.log(min(max(late, LEAST_S), MOST_S) / LEAST_S) / math.log(MOST_S / LEAST_S)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part, 1)

    def path(css: str, values: dict[int, float]) -> str:
        points = " ".join(f"{x(second)},{y(late)}" for second, late in sorted(values.items()))
        return f'<polyline class="{css}" points="{points}"/>'

    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(s)}" y2="{y(s)}"/>'
        f'<text x="{LEFT - 6}" y="{y(s) + 4}" text-anchor="end">{s:g} s</text>'
        for s in GRID_S
    ]
    for number, fault in enumerate(run.history.faults, start=1):
        start, end = x(fault.start - run.began), x(min(fault.end, run.until) - run.began)
        parts.append(
            f'<rect class="fault" x="{start}" y="{TOP}" width="{max(2.0, round(end - start, 1))}"'
            f' height="{HEIGHT - TOP - BOTTOM}"><title>{escape(fault.kind)}</title></rect>'
            f'<text class="number" x="{start}" y="{TOP + 10 + 11 * (number % 2)}">{number}</text>'
        )
    caption = (
        f"how late bodies started on {run.setup.title}: "
        "the worst of each second (orange), the median (blue), faults by number"
    )
    parts += [
        path("worst", {second: max(late) for second, late in seconds.items()}),
        path("median", {second: median(late) for second, late in seconds.items()}),
        *(
            f'<text x="{x(second)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{second} s</text>'
            for second in range(0, int(span), 30)
        ),
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(caption)}</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<style>{STYLE}</style>" + "\n".join(parts) + "</svg>\n"
    )
