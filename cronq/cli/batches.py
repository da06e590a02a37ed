"""`cronq batches`: the items of a fan-out as one thing."""

from typing import Any

import click

from cronq.app import Cronq
from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.coordination.notices import send_notice
from cronq.store import batches as store
from cronq.store.batches import Batch
from cronq.store.schedules import get_schedule
from cronq.views import batch_fields


@click.group()
def batches() -> None:
    """List, show, pause, resume, cancel and retry the batches of fan-outs."""


@batches.command("list")
@click.option("--schedule", help="Only of this schedule.")
@click.option("--unfinished", is_flag=True, help="Only those that are not at their end.")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
@click.pass_context
def list_command(
    context: click.Context, *, schedule: str | None, unfinished: bool, limit: int, as_json: bool
) -> None:
    """List batches, the newest first."""
    parts = parts_of(context)
    if schedule is not None:
        get_schedule(parts.database, schedule)
    found = store.list_batches(parts.database, schedule=schedule, unfinished=unfinished, limit=limit)
    items = [batch_fields(parts.database, each) for each in found]
    if as_json:
        print_json({"items": items})
        return
    print_table(
        "",
        ["ID", "SCHEDULE", "FIRE TIME", "STATUS", "ITEMS", "DONE", "FAILED", "PER SECOND", "ETA"],
        [
            (
                item["id"], item["schedule"], short_time(item["fire_time"]), item["status"], item["total"],
                f"{item['progress']} %", item["failed"], item["rate_per_s"], _eta(item),
            )
            for item in items
        ],
    )  # fmt: skip


@batches.command()
@click.argument("batch_id")
@json_option
@click.pass_context
def show(context: click.Context, *, batch_id: str, as_json: bool) -> None:
    """Show how far one batch is."""
    parts = parts_of(context)
    _print(batch_fields(parts.database, store.get_batch(parts.database, batch_id)), as_json=as_json)


@batches.command()
@click.argument("batch_id")
@click.pass_context
def pause(context: click.Context, *, batch_id: str) -> None:
    """Let no further item start; those that run go on."""
    parts = parts_of(context)
    _changed(parts, store.pause_batch(parts.database, batch_id))


@batches.command()
@click.argument("batch_id")
@click.pass_context
def resume(context: click.Context, *, batch_id: str) -> None:
    """Go on."""
    parts = parts_of(context)
    _changed(parts, store.resume_batch(parts.database, batch_id))


@batches.command()
@click.argument("batch_id")
@click.pass_context
def cancel(context: click.Context, *, batch_id: str) -> None:
    """Stop it: items that wait never start, those that run are asked to stop."""
    parts = parts_of(context)
    _changed(parts, store.cancel_batch(parts.database, batch_id))


@batches.command()
@click.argument("batch_id")
@click.pass_context
def retry(context: click.Context, *, batch_id: str) -> None:
    """Send the failed and timed-out items back, and only those."""
    parts = parts_of(context)
    sent = store.retry_failed(parts.database, batch_id)
    click.echo(f"{sent} items are due again")
    _changed(parts, store.get_batch(parts.database, batch_id))


def _changed(parts: Cronq, found: Batch) -> None:
    send_notice(parts.redis, parts.settings.key_prefix, "batch", batch_id=found.id)
    _print(batch_fields(parts.database, found), as_json=False)


def _print(item: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(item)
        return
    click.echo(f"{item['id']}  {item['schedule']}  {short_time(item['fire_time'])}  {item['status']}")
    counts = (
        ", ".join(f"{count} {state}" for state, count in sorted(item["counts"].items())) or "no items yet"
    )
    left = f"; about {_eta(item)} left at {item['rate_per_s']} a second" if item["eta_s"] is not None else ""
    click.echo(f"  {item['done']} of {item['total']} done: {counts}{left}")
    if item["error"]:
        click.echo(f"  not all items were found: {item['error'].strip().splitlines()[-1]}")


def _eta(item: dict[str, Any]) -> str:
    seconds = item["eta_s"]
    if seconds is None:
        return ""
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"  # noqa: PLR2004 - two minutes
