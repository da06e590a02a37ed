"""`cronq jobs cancel` and `cronq jobs retry`: by id, or all that fit."""

from collections.abc import Callable
from typing import Any

import click

from cronq.app import Cronq
from cronq.cli.common import chosen_by, parts_of, print_json
from cronq.cli.job_filters import job_filters, wanted_jobs
from cronq.coordination.notices import send_notice
from cronq.errors import JobRefused
from cronq.job import ENDS, State
from cronq.store import bulk
from cronq.store import jobs as store
from cronq.store.jobs import JobFilter


@click.command()
@chosen_by(job_filters)
def cancel(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401 - the options above
    """Stop jobs: one that waits never starts; one that runs learns it at its next progress report."""
    _act(context, "cancel", _cancel, bulk.count_stoppable, bulk.stop_jobs, **given)


@click.command()
@chosen_by(job_filters)
def retry(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401 - the options above
    """Send failed or timed-out jobs back: the same id, their history kept."""
    _act(context, "retry", _retry, bulk.count_sendable, bulk.send_jobs_back, **given)


def _cancel(parts: Cronq, job_id: str) -> str:
    state = store.request_cancel(parts.database, job_id)
    if state in ENDS and state is not State.CANCELLED:
        raise JobRefused(f"job {job_id} is over already: {state}")
    return "is running; it was asked to stop" if state is State.RUNNING else "is cancelled"


def _retry(parts: Cronq, job_id: str) -> str:
    store.retry_dead(parts.database, job_id)
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)
    return "is due again"


def _act(
    context: click.Context,
    what: str,
    one: Callable[[Cronq, str], str],
    count: Callable[[Any, JobFilter], int],
    many: Callable[[Any, JobFilter], int],
    *,
    ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401,
) -> None:
    filtered = any(value is not None for value in given.values())
    if bool(ids) == (filtered or everything):
        raise click.UsageError("say which: either ids, or filters such as --task, or --all")
    parts = parts_of(context)
    if ids and not dry_run:
        said = {job_id: one(parts, job_id) for job_id in ids}
        if as_json:
            print_json({"done": what, "count": len(said), "ids": list(said)})
        for job_id, became in {} if as_json else said.items():
            click.echo(f"{job_id} {became}")
        return
    wanted = wanted_jobs(parts.database, given)
    found = len(ids) or count(parts.database, wanted)
    if dry_run:
        print_json({"would": what, "count": found}) if as_json else click.echo(f"would {what} {_jobs(found)}")
        return
    if found and not yes:
        click.confirm(f"{what} {_jobs(found)}?", abort=True, err=True)
    done = many(parts.database, wanted)
    print_json({"done": what, "count": done}) if as_json else click.echo(f"{what}: {_jobs(done)}")


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"
