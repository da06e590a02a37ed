"""`cronq up`: the whole stack on this machine, with one command."""

import signal
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from cronq.app import Cronq
from cronq.cli.common import parts_of
from cronq.coordination.redis_client import RedisError
from cronq.demand import submit
from cronq.dev.autoscaler import Autoscaler
from cronq.dev.stack import Stack, StackOptions
from cronq.dev.verdict import troubles
from cronq.dev.view import LiveView
from cronq.job import State
from cronq.scaling import Scaler
from cronq.store import jobs as store
from cronq.store.jobs import JobFilter
from cronq.store.schema import upgrade
from cronq.store.terms import read_term
from cronq.views import job_fields

LOOK_S = 0.5
START_S = 10.0
"""A process that ends this soon was started wrongly."""


def _bounds(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, int]:
    least, comma, most = text.partition(",")
    if not comma or not least.isdigit() or not most.isdigit() or not 1 <= int(least) <= int(most):
        raise click.BadParameter(f"{text!r} is not like 1,4: the fewest workers, from 1 on, and the most")
    return int(least), int(most)


@click.command()
@click.option("-A", "--app", "app_name", help="Your Celery app: for the beats and the workers alike.")
@click.option("--beat-app", help="The app for the beats, where it is another one.")
@click.option("--worker-app", help="The app for the workers, where it is another one.")
@click.option("--for", "for_s", type=float, help="Stop by itself after this many seconds, and judge the run.")
@click.option("--api-port", default=8787, show_default=True)
@click.option("--flower-port", default=5555, show_default=True)
@click.option("--flower/--no-flower", "with_flower", default=True, help="Start Flower too.")
@click.option(
    "--enqueue", "tasks", multiple=True, metavar="TASK", help="Ask for one job of TASK at the start."
)
@click.option(
    "--also", "modules", multiple=True, metavar="MODULE", help="Start `python -m MODULE` with the rest."
)
@click.option(
    "--autoscale",
    metavar="MIN,MAX",
    default="1,1",
    callback=_bounds,
    help="Start and stop workers as the queues want them.  [default: one worker]",
)
@click.option("--folder", default=".cronq", show_default=True, type=click.Path(path_type=Path))
@click.pass_context
def up(
    context: click.Context,
    *,
    app_name: str | None,
    beat_app: str | None,
    worker_app: str | None,
    for_s: float | None,
    api_port: int,
    flower_port: int,
    with_flower: bool,
    tasks: tuple[str, ...],
    modules: tuple[str, ...],
    autoscale: tuple[int, int],
    folder: Path,
) -> None:
    """Start a development stack: Redis (embedded), SQLite, two beats, workers, the API and Flower.

    What CRONQ_REDIS_URL, CRONQ_BROKER_URL and CRONQ_DATABASE_URL name is used instead of the embedded ones.
    With --for the exit code is 0 only if jobs ran, none ended badly, and no process died.
    """
    beat, worker = beat_app or app_name, worker_app or app_name
    if beat is None or worker is None:
        raise click.UsageError("say which Celery app to run: cronq up -A your_project")
    options = StackOptions(
        beat_app=beat,
        worker_app=worker,
        folder=folder,
        api_port=api_port,
        flower_port=flower_port,
        with_flower=with_flower,
        modules=modules,
        workers=autoscale,
    )
    found = _run(context, Stack(options), tasks, for_s)
    for trouble in found:
        click.echo(f"cronq: {trouble}", err=True)
    context.exit(1 if found else 0)


def _run(context: click.Context, stack: Stack, tasks: Iterable[str], for_s: float | None) -> list[str]:
    """Start the stack, watch it, and stop it again; return what went wrong."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        stack.start()
        parts = parts_of(context, schema=False)
        upgrade(parts.database)
        started = datetime.now(UTC)
        stack.start_processes()
        for task in tasks:
            submit(parts, task, [], {})
        return _watch(stack, parts, started, for_s)
    except KeyboardInterrupt:
        return []
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
        stack.stop()


def _watch(stack: Stack, parts: Cronq, started: datetime, for_s: float | None) -> list[str]:
    """Show what happens until the time is up, a process dies, or the user has seen enough."""
    began = time.monotonic()
    until = None if for_s is None else began + for_s
    told: set[str] = set()
    wanted = JobFilter(since=started)
    with LiveView(stack.urls) as view:
        scaler = Autoscaler(stack, parts, Scaler(*stack.options.workers), view.tell)
        while until is None or time.monotonic() < until:
            if _tell_deaths(stack, view, told) and time.monotonic() - began < START_S:
                break  # it did not even start: a mistake to be corrected, not an accident to be survived
            rows = store.list_jobs(parts.database, wanted, limit=200)
            running = [row["id"] for row in rows if row["state"] == State.RUNNING]
            try:
                live = parts.board.read(running)
            except RedisError:
                live = {}
            jobs = [job_fields(row, live.get(row["id"])) for row in rows]
            stack.trim_logs()
            scaler.look()
            view.show(_leader(parts), jobs, store.count_by_state(parts.database, wanted))
            time.sleep(LOOK_S)
    dead = stack.dead()
    counts = store.count_by_state(parts.database, wanted)
    summary = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    click.echo(f"jobs of this run: {summary or 'none'}")
    return troubles(counts, [(child.name, child.exit_code()) for child in dead])


def _tell_deaths(stack: Stack, view: LiveView, told: set[str]) -> bool:
    """Say which processes have ended by themselves; return whether there are any new ones."""
    fresh = [child for child in stack.dead() if child.name not in told]
    for child in fresh:
        told.add(child.name)
        view.tell(
            f"{child.name} (pid {child.pid}) ended with exit code {child.exit_code()}; "
            f"the end of {child.log}:\n{child.last_words()}"
        )
    return bool(fresh)


def _leader(parts: Cronq) -> str:
    term = read_term(parts.database, 0)
    return "nobody yet" if term is None else f"{term.holder} (term {term.term})"


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
