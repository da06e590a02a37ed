"""`cronq jobs`: what ran, what runs, what will run, and what did not."""

import time
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from cronq.app import Cronq
from cronq.cli.common import Span, json_option, parts_of, print_json, print_table, short_time
from cronq.cli.job_actions import cancel, retry
from cronq.cli.job_filters import job_filters, wanted_jobs
from cronq.coordination.redis_client import RedisError
from cronq.job import ENDS, State
from cronq.store import jobs as store
from cronq.store.search import first_jobs
from cronq.views import attempt_fields, job_fields


@click.group()
def jobs() -> None:
    """List, show, watch, cancel and retry jobs."""


@jobs.command("list")
@job_filters
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 100_000))
@json_option
@click.pass_context
def list_command(context: click.Context, /, *, limit: int, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """List jobs, the newest first."""
    parts = parts_of(context)
    rows = first_jobs(parts.database, wanted_jobs(parts.database, given), limit=limit)
    live = _live(parts, [row["id"] for row in rows if row["state"] == State.RUNNING])
    items = [job_fields(row, live.get(row["id"])) for row in rows]
    if as_json:
        print_json({"items": items})
        return
    print_table(
        "",
        [
            "ID",
            "SCHEDULE OR TASK",
            "TENANT",
            "FIRE TIME",
            "STATE",
            "DONE",
            "ATTEMPTS",
            "STARTED",
            "WHY",
        ],
        [
            (
                item["id"],
                item["schedule"] or item["type"],
                item["tenant"],
                short_time(item["fire_time"]),
                item["status"],
                f"{item['progress']} %",
                item["attempts"],
                short_time(item["started_at"]),
                _why(item),
            )
            for item in items
        ],
    )


@jobs.command()
@click.argument("job_id")
@json_option
@click.pass_context
def show(context: click.Context, *, job_id: str, as_json: bool) -> None:
    """Show one job with its attempts and its log."""
    print_job(parts_of(context), job_id, as_json=as_json)


def print_job(parts: Cronq, job_id: str, *, as_json: bool) -> None:
    """Print all that is known of a job."""
    row = store.get_job(parts.database, job_id)
    item = job_fields(row, _live(parts, [job_id]).get(job_id))
    item["attempt_list"] = [attempt_fields(row) for row in store.attempts_of(parts.database, job_id)]
    item["log"] = _log(parts, job_id)
    if as_json:
        print_json(item)
        return
    item["metadata"] = {name: value for name, value in item["metadata"].items() if value is not None}
    for name, value in item.items():
        if name not in ("attempt_list", "log") and value not in (None, "", {}, []):
            click.echo(f"{name:20} {short_time(value) if isinstance(value, datetime) else value}")
    print_table(
        "attempts",
        ["NUMBER", "WORKER", "STARTED", "ENDED", "OUTCOME", "KIND"],
        [
            (
                a["number"],
                a["worker"],
                short_time(a["started_at"]),
                short_time(a["ended_at"]),
                a["outcome"],
                a["kind"],
            )
            for a in item["attempt_list"]
        ],
    )
    for line in item["log"]:
        click.echo(line)


@jobs.command()
@click.argument("job_id")
@click.option(
    "--for", "longest", type=Span(), default="1h", show_default=True, help="Stop watching after this time."
)
@click.pass_context
def watch(context: click.Context, *, job_id: str, longest: timedelta) -> None:
    """Follow one job to its end. Exit code 0 if it completed, 1 otherwise."""
    parts = parts_of(context)
    until = time.monotonic() + longest.total_seconds()
    with Live(console=Console(), refresh_per_second=4) as live:
        while True:
            row = store.get_job(parts.database, job_id)
            item = job_fields(row, _live(parts, [job_id]).get(job_id))
            live.update(_line(item))
            if State(item["status"]) in ENDS or time.monotonic() > until:
                break
            time.sleep(0.25)
    if (why := item["reason"] or item["error"]) and item["status"] != State.COMPLETED:
        click.echo(str(why).strip(), err=True)
    context.exit(0 if item["status"] == State.COMPLETED else 1)


jobs.add_command(cancel)
jobs.add_command(retry)


def _live(parts: Cronq, ids: list[str]) -> dict[str, dict[str, Any]]:
    try:
        return parts.board.read(ids)
    except RedisError:
        return {}  # live progress is a luxury; SQL has the state


def _log(parts: Cronq, job_id: str) -> list[str]:
    try:
        return parts.board.read_log(job_id)
    except RedisError:
        return []


def _line(item: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    step = item["metadata"]["current_step"] or ""
    bar = ProgressBar(total=100, completed=item["progress"], width=40)
    table.add_row(item["schedule"] or item["type"], item["status"], bar, f"{item['progress']} %", step)
    return table


def _why(item: dict[str, Any]) -> str:
    if item["waits_for"]:
        return f"waits for room under {item['waits_for']}"
    return item["reason"] or last_line(item["error"])


def last_line(error: str | None) -> str:
    """Return what a table shows of an error."""
    return error.strip().rsplit("\n", 1)[-1][:80] if error else ""
