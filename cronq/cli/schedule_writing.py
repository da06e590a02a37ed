"""`cronq schedules add`, `edit` and `delete`: for schedules that no code declares."""

import getpass
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from cronq.cli.common import (
    choice_of,
    complete_schedule,
    json_option,
    json_value,
    parts_of,
    print_json,
)
from cronq.cli.schedule_text import coming
from cronq.coordination.notices import send_notice
from cronq.declaration import When, at, cron, delay, every, policy_of, rrule
from cronq.errors import ScheduleRefused, UnknownSchedule
from cronq.schedule import CatchUp, Dst, Overlap, Schedule
from cronq.store import control
from cronq.store.jobs import check_payload
from cronq.store.schedules import check_schedule, get_schedule
from cronq.timing import with_hash_id
from cronq.views import schedule_fields
from cronq.webhooks.address import check_callback

TIMINGS = {"cron": cron, "every": every, "delay": delay, "at": at, "rrule": rrule}


def _declared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say when, what, and under which policy."""
    for option in reversed(
        [
            click.option("--cron", help="When: a cron expression."),
            click.option("--every", help="When: a fixed rate, e.g. 90s."),
            click.option("--delay", help="When: this long after the end of the last job."),
            click.option("--at", help="When: once, at an instant with an offset."),
            click.option("--rrule", help="When: an RFC 5545 recurrence rule."),
            click.option("--tz", help="The time zone of --cron and --rrule.  [default: UTC]"),
            click.option("--dst", type=choice_of(Dst), help="What happens when the clocks change."),
            click.option("--args", help="Positional arguments, as a JSON list."),
            click.option("--kwargs", help="Keyword arguments, as a JSON object."),
            click.option("--queue", help="The queue; by default the task's own."),
            click.option("--needs", help="Instead of a queue: machine and places, cpu@eu-west,eu."),
            click.option("--priority", type=click.IntRange(0, 9), help="Higher is sooner."),
            click.option("--overlap", type=choice_of(Overlap), help="While the last job goes on."),
            click.option("--buffer", type=click.IntRange(1), help="How many may wait under --overlap queue."),
            click.option("--catch-up", type=choice_of(CatchUp), help="After an outage."),
            click.option("--catch-up-window", help="How far back, e.g. 1h."),
            click.option("--jitter", help="Start each time another part of this later, e.g. 30s."),
            click.option("--spread", help="Start always the same part of this later."),
            click.option("--max-attempts", type=click.IntRange(1), help="Try a failing job this often."),
            click.option("--pause-after", type=click.IntRange(1), help="Pause when so many fail in a row."),
            click.option("--tenant", help="Whose it is."),
            click.option("--callback-url", help="Whom to tell of each job's end, by a signed webhook."),
        ]
    ):
        command = option(command)
    return json_option(click.pass_context(command))


@click.command()
@click.argument("name")
@click.option("--task", required=True, help="The task's registered name.")
@_declared
def add(context: click.Context, /, *, name: str, task: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Make the schedule NAME; there must be none of this name."""
    parts = parts_of(context)
    try:
        known = get_schedule(parts.database, name)
    except UnknownSchedule:
        known = None
    if known is not None and known.retired_at is None:
        raise ScheduleRefused(f"there is a schedule {name!r} already; change it with: cronq schedules edit")
    when = _when(given)
    if when is None:
        raise click.UsageError("say when: --cron, --every, --delay, --at or --rrule")
    _write(
        context,
        _checked(lambda: when.schedule(name=name, task=task, **policy_of(_policy(given)))),
        as_json=as_json,
    )


@click.command()
@click.argument("name", shell_complete=complete_schedule)
@click.option("--task", help="Another task.")
@click.option("--if-version", type=int, help="Only if it still is at this version.")
@_declared
def edit(
    context: click.Context,
    /,
    *,
    name: str,
    task: str | None,
    if_version: int | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    """Change what is given of the schedule NAME, and leave the rest. What code declares is changed there."""
    stored = get_schedule(parts_of(context).database, name)
    control.require_readable(stored)
    when = _when(given)
    if when is None and (given["tz"] or given["dst"]):
        raise click.UsageError("--tz and --dst belong to a timing; repeat it: --cron or --rrule")
    changes: dict[str, Any] = _checked(lambda: policy_of(_policy(given)))
    if when is not None:
        changes["timing"] = with_hash_id(when.timing.to_data(), stored.id)
    if task is not None:
        changes["task"] = task
    if named := {"queue", "needs"}.intersection(changes):
        changes |= dict.fromkeys({"queue", "needs"} - named)  # the one takes the place of the other
    if not changes:
        raise click.UsageError("say what to change, such as --cron or --queue")
    wanted = replace(stored.definition, **changes)
    _write(context, wanted, version=if_version or stored.version, as_json=as_json)


@click.command()
@click.argument("name", shell_complete=complete_schedule)
@click.option("--if-version", type=int, help="Only if it still is at this version.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(context: click.Context, *, name: str, if_version: int | None, yes: bool) -> None:
    """Stop the schedule NAME for good; its jobs and its history stay."""
    parts = parts_of(context)
    control.require_deletable(parts.database, name, version=if_version)
    if not yes:
        click.confirm(f"delete the schedule {name}?", abort=True, err=True)
    stored = control.delete(parts.database, name, version=if_version)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)
    click.echo(f"{name} is deleted; its history stays")


def _write(context: click.Context, wanted: Schedule, *, version: int | None = None, as_json: bool) -> None:
    parts = parts_of(context)
    check_schedule(wanted)
    if wanted.callback_url is not None:
        check_callback(wanted.callback_url, parts.settings)
    check_payload(list(wanted.args), wanted.kwargs, parts.settings.max_payload_bytes)
    stored, _new = control.write(parts.database, wanted, actor=f"shell {getpass.getuser()}", version=version)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)
    if as_json:
        print_json(schedule_fields(stored))
    else:
        click.echo(f"{stored.name} is at version {stored.version}; {coming(stored)}")


def _when(given: dict[str, Any]) -> When | None:
    """Return the timing that the options name, or None."""
    named = [name for name in TIMINGS if given[name] is not None]
    if not named:
        return None
    if len(named) > 1:
        raise click.UsageError(f"give one of --{' and --'.join(named)}")
    kind = named[0]
    zoned = {"cron": ("tz", "dst"), "rrule": ("tz",)}.get(kind, ())
    for name in ("tz", "dst"):
        if given[name] is not None and name not in zoned:
            raise click.UsageError(f"--{name} does not go with --{kind}")
    options = {name: given[name] for name in zoned if given[name] is not None}
    when: When = _checked(lambda: TIMINGS[kind](given[kind], **options))  # type: ignore[operator]
    return when


def _policy(given: dict[str, Any]) -> dict[str, Any]:
    """Return the policy that the options name."""
    policy = {
        name: value
        for name, value in given.items()
        if value is not None and name not in (*TIMINGS, "tz", "dst")
    }
    if "args" in policy:
        policy["args"] = json_value("--args", policy["args"], list)
    if "kwargs" in policy:
        policy["kwargs"] = json_value("--kwargs", policy["kwargs"], dict)
    return policy


def _checked(make: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return what `make` makes; what it refuses is a mistake in the command."""
    try:
        return make()
    except (TypeError, ValueError, OverflowError) as error:
        raise click.UsageError(str(error)) from error
