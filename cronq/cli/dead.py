"""`cronq dead`: what failed for good, and what nobody could run; send it back, or discard it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import click

from cronq.app import Cronq
from cronq.cli.common import Span, chosen_by, json_option, parts_of, print_json, print_table, short_time
from cronq.cli.jobs import last_line, print_job
from cronq.coordination.notices import send_notice
from cronq.retry import Kind
from cronq.store import dead as store
from cronq.store.database import Database
from cronq.store.dead import DeadFilter
from cronq.store.dead_messages import get_message
from cronq.store.schedules import get_schedule
from cronq.views import dead_fields, dead_message_fields

SHOWN = 10
NOTICES = 100
"""Jobs that the leader is told of one by one; it finds more within a second."""


@click.group()
def dead() -> None:
    """List, show, retry and discard dead letters: jobs that failed for good, messages nobody could run."""


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which dead letters are meant."""
    for option in reversed(
        [
            click.option("--task", help="Only of this task."),
            click.option("--schedule", help="Only of this schedule."),
            click.option("--tenant", help="Only of this tenant."),
            click.option(
                "--kind", type=click.Choice([k.value for k in Kind]), help="Only this sort of failure."
            ),
            click.option("--since", type=Span(), help="Only those that died within this time, e.g. 2h."),
            click.option("--until", type=Span(), help="Only those that died longer ago than this, e.g. 30m."),
        ]
    ):
        command = option(command)
    return command


def _wanted(
    database: Database, *, since: timedelta | None, until: timedelta | None, **given: str | None
) -> DeadFilter:
    if given["schedule"] is not None:
        get_schedule(database, given["schedule"])
    now = datetime.now(UTC)
    return DeadFilter(
        task=given["task"],
        schedule=given["schedule"],
        tenant=given["tenant"],
        kind=given["kind"],
        since=None if since is None else now - since,
        until=None if until is None else now - until,
    )


@dead.command("list")
@_filters
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 100_000))
@json_option
@click.pass_context
def list_command(context: click.Context, /, *, limit: int, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """List dead letters, the newest first."""
    parts = parts_of(context)
    wanted = _wanted(parts.database, **given)
    letters = store.list_dead(parts.database, wanted, limit=limit)
    count = store.count_dead_letters(parts.database, wanted)
    if as_json:
        print_json({"items": [dead_fields(letter) for letter in letters], "count": count})
        return
    _print_letters(letters)
    if count > len(letters):
        click.echo(f"{count - len(letters)} more; see them with -n {count}")


@dead.command()
@click.argument("dead_id")
@json_option
@click.pass_context
def show(context: click.Context, *, dead_id: str, as_json: bool) -> None:
    """Show one dead letter: a job with its attempts, or a message as it came."""
    parts = parts_of(context)
    letter = store.get_dead(parts.database, dead_id)
    message = get_message(parts.database, dead_id) if letter.what == "message" else None
    if message is None:
        print_job(parts, dead_id, as_json=as_json)
        return
    item = dead_message_fields(message)
    if as_json:
        print_json(item)
        return
    for name, value in item.items():
        if value not in (None, "", {}):
            click.echo(f"{name:20} {short_time(value) if isinstance(value, datetime) else value}")


@dead.command()
@chosen_by(_filters)
def retry(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401 - the options above
    """Send dead letters back, by id or by filter: a job under its own id, a message to its queue."""
    _act(context, "retry", **given)


@dead.command()
@chosen_by(_filters)
def discard(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401 - the options above
    """Take dead letters off the list, by id or by filter. A job stays in the history as it failed."""
    _act(context, "discard", **given)


def _act(
    context: click.Context,
    action: Literal["retry", "discard"],
    *,
    ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    filtered = any(value is not None for value in given.values())
    if not ids and not filtered and not everything:
        raise click.UsageError("say which: ids, filters such as --task, or --all")
    parts = parts_of(context)
    wanted = _wanted(parts.database, **given)
    if ids:
        wanted = replace(wanted, ids=ids)
        for dead_id in ids:
            store.get_dead(parts.database, dead_id)
    count = store.count_dead_letters(parts.database, wanted)
    if dry_run:
        _say_what_would_be_done(parts, action, wanted, count, as_json=as_json)
        return
    if not ids and count and not yes:
        click.confirm(f"{action} {_letters(count)}?", abort=True, err=True)
    done = (store.retry_dead_letters if action == "retry" else store.discard_dead_letters)(
        parts.database, wanted
    )
    if action == "retry":
        for job_id in done[:NOTICES]:
            send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)
    _say_what_was_done(action, done, wanted, as_json=as_json)
    left = sorted(set(ids) - set(done))
    if left:
        raise click.ClickException(
            f"{', '.join(left)} cannot be sent back: not whole, or it came from no queue; "
            "look at it with: cronq dead show ID"
        )


def _say_what_would_be_done(
    parts: Cronq, action: str, wanted: DeadFilter, count: int, *, as_json: bool
) -> None:
    letters = store.list_dead(parts.database, wanted, limit=count if as_json else SHOWN) if count else []
    if as_json:
        print_json({"would": action, "count": count, "ids": [letter.id for letter in letters]})
        return
    click.echo(f"would {action} {_letters(count)}{':' if count else ''}")
    if letters:
        _print_letters(letters)
    if count > len(letters):
        click.echo(f"and {count - len(letters)} more")


def _say_what_was_done(action: str, done: list[str], wanted: DeadFilter, *, as_json: bool) -> None:
    if as_json:
        print_json({"done": action, "count": len(done), "ids": done})
        return
    past = "due again" if action == "retry" else "discarded"
    for dead_id in done if wanted.ids is not None else []:
        click.echo(f"{dead_id} is {past}")
    if wanted.ids is None:
        click.echo(f"{_letters(len(done))} {'is' if len(done) == 1 else 'are'} {past}")


def _letters(count: int) -> str:
    return f"{count} dead letter{'' if count == 1 else 's'}"


def _print_letters(letters: list[store.DeadLetter]) -> None:
    print_table(
        "",
        ["ID", "WHAT", "SCHEDULE OR TASK", "TENANT", "DIED", "KIND", "ATTEMPTS", "ERROR"],
        [
            (
                letter.id,
                letter.what,
                letter.schedule or letter.task,
                letter.tenant,
                short_time(letter.dead_at),
                letter.kind,
                letter.attempts,
                last_line(dead_fields(letter)["error"]),
            )
            for letter in letters
        ],
    )
