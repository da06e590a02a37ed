"""`cronq enqueue`: one job, now or later."""

from datetime import timedelta

import click

from cronq.cli.common import Span, json_option, json_value, parts_of, print_json
from cronq.demand import submit


@click.command("enqueue")
@click.argument("task")
@click.option("--args", "args_json", default="[]", help="Positional arguments, as a JSON list.")
@click.option("--kwargs", "kwargs_json", default="{}", help="Keyword arguments, as a JSON object.")
@click.option("--in", "run_in", type=Span(), help="Run after this time, e.g. 30m.")
@click.option("--queue", help="The queue; by default the task's own.")
@click.option("--needs", help="Instead of a queue: machine and places, e.g. cpu@eu-west,eu.")
@click.option("--priority", type=click.IntRange(0, 9), help="Higher is sooner.")
@click.option("--max-attempts", type=click.IntRange(1), help="Try a failing job this often.")
@click.option("--dedup-key", help="A second request with this key is the same job.")
@click.option("--tenant", help="Whose it is.")
@click.option("--callback-url", help="Whom to tell of its end, by a signed webhook.")
@json_option
@click.pass_context
def enqueue_command(
    context: click.Context,
    *,
    task: str,
    args_json: str,
    kwargs_json: str,
    run_in: timedelta | None,
    queue: str | None,
    needs: str | None,
    priority: int | None,
    max_attempts: int | None,
    dedup_key: str | None,
    tenant: str | None,
    callback_url: str | None,
    as_json: bool,
) -> None:
    """Ask for one job of TASK (its registered name) and print its id."""
    job_id, new = submit(
        parts_of(context),
        task,
        json_value("--args", args_json, list),
        json_value("--kwargs", kwargs_json, dict),
        due=0.0 if run_in is None else run_in.total_seconds(),
        queue=queue,
        needs=needs,
        priority=priority,
        max_attempts=max_attempts,
        dedup_key=dedup_key,
        tenant=tenant,
        callback_url=callback_url,
    )
    if as_json:
        print_json({"id": job_id, "new": new})
    else:
        click.echo(job_id)
