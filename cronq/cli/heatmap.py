"""`cronq heatmap` shows how many jobs start in each minute of a day, the herds, and who could move."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from cronq.cli.next import Refused
from cronq.timing.base import iso
from cronq.timing.load import Herd, Load, Member, daily_load

SHADES = " ▁▂▃▄▅▆▇█"
HOURS = 24
SHOWN_HERDS = 10
SHOWN_NAMES = 3


@click.command()
@click.option("--from", "day", help="The day in UTC, such as 2026-10-25. [today]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_context
def heatmap(context: click.Context, *, day: str | None, as_json: bool) -> None:
    """Draw the fires per minute of one day for all schedules that are neither paused nor retired."""
    load = daily_load(load_schedules(context), _midnight(day))
    if as_json:
        click.echo(json.dumps(_data(load), indent=2))
        return
    _draw(load)


def load_schedules(context: click.Context) -> Sequence[Member]:
    """Return the stored schedules."""
    # Imported when used: the command line's help needs no database.
    from cronq.cli.common import parts_of  # noqa: PLC0415
    from cronq.store.overview import firing_members  # noqa: PLC0415

    return firing_members(parts_of(context).database)


def _midnight(day: str | None) -> datetime:
    if day is None:
        return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), datetime.min.time(), UTC)
    except ValueError:
        raise Refused(f"--from: {day!r} is no date; write one as 2026-10-25") from None


def _data(load: Load) -> dict[str, object]:
    return {
        "from": iso(load.start),
        "per_minute": list(load.per_minute),
        "herds": [
            {"minute": _instant(load, herd), "fires": herd.fires, "schedules": list(herd.names)}
            for herd in load.herds
        ],
        "advice": list(load.advice),
    }


def _draw(load: Load) -> None:
    """Draw one line per hour with one character per minute."""
    most = max(load.per_minute)
    click.echo(
        f"fires per minute on {load.start:%Y-%m-%d} (UTC): {sum(load.per_minute)} in all, at most {most}"
    )
    click.echo("      " + "".join(f"{minute:<10}" for minute in range(0, 60, 10)))
    for hour in range(HOURS):
        minutes = load.per_minute[hour * 60 : hour * 60 + 60]
        click.echo(f"{hour:02}:00 " + "".join(_shade(each, most) for each in minutes) + f" {sum(minutes)}")
    for herd in load.herds[:SHOWN_HERDS]:
        names = ", ".join(herd.names[:SHOWN_NAMES]) + (", …" if len(herd.names) > SHOWN_NAMES else "")
        click.echo(f"herd at {_instant(load, herd)}: {herd.fires} jobs ({names})")
    for advice in load.advice[:SHOWN_HERDS]:
        click.echo(f"→ {advice}")


def _shade(fires: int, most: int) -> str:
    """Return a bar: empty for none, full for the busiest minute."""
    return SHADES[-(-fires * (len(SHADES) - 1) // most)] if fires else SHADES[0]


def _instant(load: Load, herd: Herd) -> str:
    return iso(load.start + timedelta(minutes=herd.minute))
