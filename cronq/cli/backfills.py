"""`cronq backfills`: run a schedule's past fire times again, at a pace of their own."""

import getpass
from typing import Any

import click

from cronq.cli.common import json_option, moment_of, parts_of, print_json, print_table, short_time
from cronq.coordination.notices import send_notice
from cronq.store import backfills as store
from cronq.store.backfills import BackfillRange, BackfillState
from cronq.store.schedules import get_schedule


@click.group()
def backfills() -> None:
    """Run past fire times of a schedule: start, list, show, pause, resume and cancel."""


@backfills.command()
@click.argument("schedule")
@click.option(
    "--from",
    "start",
    required=True,
    help="From this time on, e.g. 2026-11-20T00:00, on the schedule's clocks.",
)
@click.option("--to", "end", help="Up to and without this time; by default now.")
@click.option("--concurrency", default=1, show_default=True, help="How many of its jobs run at a time.")
@click.option("--newest-first", is_flag=True, help="Begin at the end of the range.")
@click.option("--again", is_flag=True, help="Also the fire times that have completed, or are under way.")
@click.option("--dry-run", is_flag=True, help="Say what it would do, and do nothing.")
@json_option
@click.pass_context
def start(
    context: click.Context,
    *,
    schedule: str,
    start: str,
    end: str | None,
    concurrency: int,
    newest_first: bool,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run SCHEDULE's fire times of a range that were missed, skipped, cancelled or failed.

    Each becomes a job of its own beside what is on record, and stays out of the overlap policy.
    """
    parts = parts_of(context)
    stored = get_schedule(parts.database, schedule)
    wanted = BackfillRange(
        start=moment_of(stored, start),
        end=parts.database.clock() if end is None else moment_of(stored, end),
        concurrency=concurrency,
        newest_first=newest_first,
        again=again,
    )
    if dry_run:
        _print_preview(store.preview(parts.database, schedule, wanted), as_json=as_json)
        return
    begun = store.start(parts.database, schedule, wanted, actor=f"cli:{getpass.getuser()}")
    send_notice(parts.redis, parts.settings.key_prefix, "backfill")
    _print(begun, as_json=as_json)


@backfills.command("list")
@click.option("--schedule", help="Only of this schedule.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
@json_option
@click.pass_context
def list_command(context: click.Context, *, schedule: str | None, limit: int, as_json: bool) -> None:
    """List backfills, the newest first."""
    database = parts_of(context).database
    if schedule is not None:
        get_schedule(database, schedule)
    rows = store.list_backfills(database, schedule_name=schedule, limit=limit)
    if as_json:
        print_json({"items": [dict(row) for row in rows]})
        return
    print_table(
        "",
        ["ID", "SCHEDULE", "FROM", "TO", "STATE", "JOBS", "FIRE TIMES", "BY"],
        [
            (
                row["id"], row["schedule_name"], short_time(row["range_start"]), short_time(row["range_end"]),
                row["state"], row["planned"], row["fires"], row["actor"],
            )
            for row in rows
        ],
    )  # fmt: skip


@backfills.command()
@click.argument("backfill_id")
@json_option
@click.pass_context
def show(context: click.Context, *, backfill_id: str, as_json: bool) -> None:
    """Show how far one backfill is."""
    _print(store.get_backfill(parts_of(context).database, backfill_id), as_json=as_json)


@backfills.command()
@click.argument("backfill_id")
@click.pass_context
def pause(context: click.Context, *, backfill_id: str) -> None:
    """Start none of its jobs until it is resumed."""
    _set_state(context, backfill_id, BackfillState.PAUSED)


@backfills.command()
@click.argument("backfill_id")
@click.pass_context
def resume(context: click.Context, *, backfill_id: str) -> None:
    """Go on."""
    _set_state(context, backfill_id, BackfillState.RUNNING)


@backfills.command()
@click.argument("backfill_id")
@click.pass_context
def cancel(context: click.Context, *, backfill_id: str) -> None:
    """End it: its jobs that have not started never will; those that run go on."""
    _set_state(context, backfill_id, BackfillState.CANCELLED)


def _set_state(context: click.Context, backfill_id: str, wanted: BackfillState) -> None:
    parts = parts_of(context)
    row = store.set_state(parts.database, backfill_id, wanted)
    send_notice(parts.redis, parts.settings.key_prefix, "backfill")
    _print(row, as_json=False)


def _print(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(row)
        return
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(row["jobs"].items())) or "no jobs yet"
    click.echo(
        f"{row['id']}  {row['schedule_name']}  {row['state']}" + (f": {row['note']}" if row["note"] else "")
    )
    start, end = short_time(row["range_start"]), short_time(row["range_end"])
    click.echo(f"  {start} to {end}, {row['fires']} fire times: {jobs}")


def _print_preview(preview: store.Preview, *, as_json: bool) -> None:
    if as_json:
        print_json({"fires": preview.fires, "runs": preview.runs, "first": list(preview.first)})
        return
    click.echo(
        f"{preview.runs} of {preview.fires} fire times would run" + (", first:" if preview.runs else "")
    )
    for fire_time in preview.first:
        click.echo(f"  {short_time(fire_time)}")
