"""`cronq schedules`: what is due, what became of it, and pausing, resuming and running it by hand."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import click

from cronq.app import Cronq
from cronq.cli.common import (
    complete_schedule,
    json_option,
    moment_of,
    parts_of,
    print_json,
    print_table,
    short_time,
)
from cronq.cli.schedule_text import coming, policy_lines, timing_text
from cronq.cli.schedule_writing import add, delete, edit
from cronq.coordination.notices import send_notice
from cronq.store import control
from cronq.store.fires import Fire, around, fires, latest_fires, next_fires
from cronq.store.overview import find_schedules
from cronq.store.schedules import StoredSchedule, get_schedule
from cronq.timing.bounds import tz_of
from cronq.timing.explain import explain
from cronq.views import fire_fields, schedule_fields
from cronq.why import why

SHOWN = 10


@click.group()
def schedules() -> None:
    """List, show, write, pause, resume and run schedules, and ask why one did not run."""


for _command in (add, edit, delete):
    schedules.add_command(_command)


@schedules.command("list")
@click.option("--text", default="", help="Only with this in the name or the task.")
@click.option("--only", type=click.Choice(["paused", "faulty", "retired"]), help="Only in this state.")
@click.option("--after", default="", metavar="NAME", help="Go on after this name.")
@click.option("-n", "--limit", default=100, show_default=True, type=click.IntRange(1, 100_000))
@json_option
@click.pass_context
def list_command(
    context: click.Context, *, text: str, only: str | None, after: str, limit: int, as_json: bool
) -> None:
    """List schedules by name, all but the retired ones."""
    database = parts_of(context).database
    found = find_schedules(database, text=text, only=only, after=after, limit=limit + 1)
    shown, more = found[:limit], found[limit - 1].name if len(found) > limit else None
    if as_json:
        print_json({"items": [schedule_fields(each) for each in shown], "next_after": more})
        return
    print_table(
        "",
        ["NAME", "TASK", "TIMING", "NEXT FIRE TIME", "OVERLAP", "CATCH-UP", "STATE"],
        [
            (
                each.name,
                each.definition.task,
                timing_text(each.timing),
                short_time(each.next_fire_at),
                each.definition.overlap,
                each.definition.catch_up,
                _state(each),
            )
            for each in shown
        ],
    )
    if more is not None:
        click.echo(f"more: --after {more!r}")


@schedules.command()
@click.argument("name", shell_complete=complete_schedule)
@json_option
@click.pass_context
def show(context: click.Context, *, name: str, as_json: bool) -> None:
    """Show one schedule with its next and its last ten fire times."""
    database = parts_of(context).database
    stored = get_schedule(database, name)
    timing = stored.timing
    coming = next_fires(stored, database.clock(), SHOWN)
    past = latest_fires(database, stored, SHOWN)
    if as_json:
        last = [fire_fields(each) for each in past]
        print_json(
            schedule_fields(stored) | {"meaning": explain(timing), "next_fires": coming, "last_fires": last}
        )
        return
    click.echo(f"{name}: {explain(timing)}")
    click.echo(f"task {stored.definition.task}, version {stored.version} of {stored.source}")
    if _state(stored):
        click.echo(_state(stored))
    for line in policy_lines(stored):
        click.echo(line)
    zone = ZoneInfo(tz_of(timing))
    for fire_time in coming:
        local = "" if str(zone) == "UTC" else f"  ({fire_time.astimezone(zone):%Y-%m-%d %H:%M:%S%z} {zone})"
        click.echo(f"  next {short_time(fire_time)}{local}")
    _print_fires("", past)


@schedules.command()
@click.argument("name", shell_complete=complete_schedule)
@click.option("--note", help="Why, for whoever finds it paused.")
@click.pass_context
def pause(context: click.Context, *, name: str, note: str | None) -> None:
    """Let no further fire time become a job; each is recorded as skipped because of the pause."""
    parts = parts_of(context)
    _tell(parts, control.pause(parts.database, name, note=note))
    click.echo(f"{name} is paused; go on with: cronq schedules resume {name}")


@schedules.command()
@click.argument("name", shell_complete=complete_schedule)
@click.pass_context
def resume(context: click.Context, *, name: str) -> None:
    """Go on with the next fire time."""
    parts = parts_of(context)
    stored = control.resume(parts.database, name, limit=parts.settings.catch_up_limit)
    _tell(parts, stored)
    click.echo(f"{name} goes on: {coming(stored)}")


@schedules.command()
@click.argument("name", shell_complete=complete_schedule)
@json_option
@click.pass_context
def run(context: click.Context, *, name: str, as_json: bool) -> None:
    """Ask for one job of the schedule now, and say its id."""
    parts = parts_of(context)
    job_id, _new = control.trigger(parts.database, name)
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)
    if as_json:
        print_json({"id": job_id, "schedule": name})
    else:
        click.echo(f"job {job_id} of {name} asked for")


@schedules.command("fires")
@click.argument("name", shell_complete=complete_schedule)
@click.option("--since", help="From this time on, e.g. 2026-11-21T02:00; by default an hour ago.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
@json_option
@click.pass_context
def fires_command(context: click.Context, *, name: str, since: str | None, limit: int, as_json: bool) -> None:
    """List what became of each fire time."""
    database = parts_of(context).database
    stored = get_schedule(database, name)
    now = database.clock()
    start = now - timedelta(hours=1) if since is None else moment_of(stored, since)
    found, more = fires(database, stored, start, now, limit=limit)
    if as_json:
        print_json({"schedule": name, "items": [fire_fields(each) for each in found], "next_from": more})
        return
    _print_fires("", found)
    if more is not None:
        click.echo(f"more: --since {more.isoformat()}")


@schedules.command("why")
@click.argument("name", shell_complete=complete_schedule)
@click.argument("moment")
@json_option
@click.pass_context
def why_command(context: click.Context, *, name: str, moment: str, as_json: bool) -> None:
    """Say what became of the fire time at MOMENT: of that minute, or of that second.

    MOMENT is `2026-11-21T02:30`, or `02:30` or `02:30:20` of today, on the schedule's own clocks; or it has
    an offset.
    Exit code 1 if the schedule is not due then.
    """
    parts = parts_of(context)
    stored = get_schedule(parts.database, name)
    at = moment_of(stored, moment)
    found = why(parts, stored, at)
    if as_json:
        print_json({"schedule": name, "at": at, "items": [fire_fields(each) for each in found]})
    elif found:
        _print_fires("", found)
    else:
        before, after = around(stored, at)
        known = f"before it {short_time(before) or 'never'}, after it {short_time(after) or 'never'}"
        click.echo(f"{name} is not due at {short_time(at)}; {known}", err=True)
    if not found:
        context.exit(1)


def _print_fires(title: str, found: list[Fire]) -> None:
    print_table(
        title,
        ["FIRE TIME", "WHAT", "WHY", "JOB"],
        [
            (
                short_time(each.fire_time),
                each.state,
                each.detail + (f": {short_time(each.into)}" if each.into else "") + _made_up_for(each),
                "" if each.job is None else each.job["id"],
            )
            for each in found
        ],
    )


def _made_up_for(fire: Fire) -> str:
    return "" if fire.backfill is None else f"; backfilled: {fire.backfill['state']} {fire.backfill['id']}"


def _tell(parts: Cronq, stored: StoredSchedule) -> None:
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _state(stored: StoredSchedule) -> str:
    if stored.retired_at is not None:
        return "retired"
    if stored.fault is not None:
        return f"set aside: {stored.fault}"
    return f"paused: {stored.pause_note or ''}" if stored.paused_at is not None else ""
