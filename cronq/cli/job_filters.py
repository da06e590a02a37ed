"""The options that say which jobs are meant: the same for listing, cancelling and sending back."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from cronq.cli.common import Span, complete_schedule
from cronq.job import State
from cronq.store.database import Database
from cronq.store.jobs import JobFilter
from cronq.store.schedules import get_schedule

STATES = click.Choice([state.value for state in State], case_sensitive=False)


def job_filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to `command`."""
    for option in reversed(
        [
            click.option("--state", type=STATES, help="Only in this state."),
            click.option("--schedule", shell_complete=complete_schedule, help="Only of this schedule."),
            click.option("--task", help="Only of this task."),
            click.option("--tenant", help="Only of this tenant."),
            click.option("--queue", help="Only for this queue."),
            click.option("--text", help="Only with this in id, task, schedule, tenant or error."),
            click.option("--since", type=Span(), help="Only planned within this time, e.g. 2h."),
            click.option("--until", type=Span(), help="Only planned longer ago than this, e.g. 30m."),
        ]
    ):
        command = option(command)
    return command


def wanted_jobs(database: Database, given: dict[str, Any]) -> JobFilter:
    """Return what the options mean; raise `UnknownSchedule` if they name one that is not there."""
    if given["schedule"] is not None:
        get_schedule(database, given["schedule"])
    now = datetime.now(UTC)
    state, since, until = given["state"], given["since"], given["until"]
    return JobFilter(
        state=None if state is None else State(state.upper()),
        schedule=given["schedule"],
        task=given["task"],
        tenant=given["tenant"],
        queue=given["queue"],
        text=given["text"],
        since=None if since is None else now - since,
        until=None if until is None else now - until,
    )
