"""`cronq next` says when it will fire: computed as in production, with a note at all that is unusual."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

from cronq.errors import CronqError
from cronq.schedule import Dst, Schedule, schedule_id
from cronq.timing import (
    At,
    Cron,
    Delay,
    Every,
    InvalidTiming,
    RRule,
    Timing,
    duration,
    timing_from,
    with_hash_id,
)
from cronq.timing.base import iso
from cronq.timing.preview import Upcoming, upcoming

MOST = 10_000


class Refused(click.ClickException):
    """What was asked for makes no sense; the message says what to write instead."""

    exit_code = 2

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - as click declares it
        """Print the message alone, to standard error."""
        del file
        click.echo(f"cronq: {self.message}", err=True)


@click.command("next")
@click.argument("expression", required=False)
@click.option("--tz", default="UTC", show_default=True, help="The time zone, such as Europe/Paris.")
@click.option("--from", "start", help="Fire times strictly after this instant; UTC without an offset. [now]")
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, show_default=True, help="How many.")
@click.option("--dst", type=click.Choice([each.value for each in Dst]), default="vixie", show_default=True,
              help="What happens when the clocks change.")  # fmt: skip
@click.option("--day", type=click.Choice(["or", "and"]), default="or", show_default=True,
              help="How day-of-month and day-of-week join.")  # fmt: skip
@click.option("--every", help="Instead of EXPRESSION: a fixed rate, such as 90s.")
@click.option("--rrule", help="Instead: a recurrence rule, such as FREQ=DAILY;BYHOUR=9.")
@click.option("--at", "instant", help="Instead: once, at an ISO 8601 instant.")
@click.option("--schedule", "name", help="Instead: the stored schedule of this name.")
@click.option("--hash-id", help="The schedule name that H draws its values from.")
@click.option("--jitter", help="Show each fire time's jitter within this spread, such as 30s.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_context
def next_command(
    context: click.Context,
    /,
    *,
    start: str | None,
    count: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the options that say when
) -> None:
    """Print the next fire times of EXPRESSION, a cron expression.

    Five fields: minute hour day month weekday; seconds go first, a year last.
    """
    try:
        timing, spread, identity = _asked_for(context, given)
        found = list(upcoming(timing, _start(start), count, spread=spread, schedule_id=identity))
    except CronqError as error:
        raise Refused(str(error)) from None
    if as_json:
        click.echo(json.dumps([each.to_data() for each in found], indent=2))
    else:
        _print(found)


def _asked_for(context: click.Context, given: dict[str, Any]) -> tuple[Timing, timedelta, str]:
    """Return the timing, its jitter and the schedule's id."""
    ways = [name for name in ("expression", "every", "rrule", "instant", "name") if given[name] is not None]
    if len(ways) != 1:
        said = "nothing says when" if not ways else "more than one thing says when"
        raise Refused(f"{said}; give one of EXPRESSION, --every, --rrule, --at and --schedule")
    if given["name"] is not None:
        stored = load_schedule(context, given["name"])
        timing = timing_from(with_hash_id(stored.timing, stored.id))
        return timing, stored.jitter, stored.id
    identity = schedule_id(given["hash_id"]) if given["hash_id"] else ""
    spread = duration(given["jitter"], "jitter") if given["jitter"] else timedelta(0)
    return _timing(given, identity or None), spread, identity


def _timing(given: dict[str, Any], hash_id: str | None) -> Timing:
    tz, dst = given["tz"], Dst(given["dst"])
    if given["every"] is not None:
        return Every(duration(given["every"], "every"))
    if given["rrule"] is not None:
        return RRule(given["rrule"], tz, dst)
    if given["instant"] is not None:
        return At(_instant(given["instant"], "at"))
    timing = Cron(given["expression"], tz, dst, given["day"], hash_id)
    if timing.hashed and hash_id is None:
        raise InvalidTiming(
            "H is drawn from the schedule's name", field="expression", text=given["expression"],
            suggestion="give it with --hash-id NAME",
        )  # fmt: skip
    return timing


def load_schedule(context: click.Context, name: str) -> Schedule:
    """Return the stored schedule called `name`."""
    # Only --schedule needs a database: everything else works on any machine.
    from cronq.cli.common import parts_of  # noqa: PLC0415
    from cronq.store.control import require_readable  # noqa: PLC0415
    from cronq.store.schedules import get_schedule  # noqa: PLC0415

    stored = get_schedule(parts_of(context).database, name)
    require_readable(stored)
    found = stored.definition
    if isinstance(timing_from(with_hash_id(found.timing, found.id)), Delay):
        raise Refused(f"{name} is a fixed delay: it fires after the end of each job, whenever that is")
    return found


def _start(text: str | None) -> datetime:
    return datetime.now(UTC) if text is None else _instant(text, "--from")


def _instant(text: str, field: str) -> datetime:
    """Return the instant that an ISO 8601 date or date-time names; UTC without an offset."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTiming(
            "this is no ISO 8601 instant", field=field, text=text,
            suggestion=f"write one as {date(2026, 10, 24)} or {date(2026, 10, 24)}T02:30:00+02:00",
        ) from None  # fmt: skip
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _print(found: list[Upcoming]) -> None:
    if not found:
        click.echo("never again")
    for each in found:
        note = f"   {each.note}" if each.note else ""
        local = each.local.isoformat(sep=" ")
        click.echo(f"{each.local:%a} {local}   {iso(each.fire_time)}{note}")
