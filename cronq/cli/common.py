"""What the commands share: the app they speak for, and how they print."""

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import click
from celery import Celery
from celery.bin.celery import find_app
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cronq.app import Cronq, cronq_of
from cronq.job import State
from cronq.store.overview import find_schedules
from cronq.store.schedules import StoredSchedule
from cronq.store.schema import require_schema
from cronq.timing import InvalidTiming, duration
from cronq.timing.bounds import tz_of
from cronq.timing.moments import moment_on
from cronq.views import to_json

COMPLETED = 100
STYLES: dict[str, str] = {
    State.COMPLETED: "green",
    State.RUNNING: "blue",
    State.RETRYING: "yellow",
    State.FAILED: "red",
    State.TIMED_OUT: "red",
    State.SKIPPED: "bright_black",
    State.CANCELLED: "bright_black",
}
"""How a state looks on a terminal; the word says the same."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

Command = Callable[..., Any]


def chosen_by(filters: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return what adds the options of a command that acts on ids, or on all that `filters` leave."""
    options = [
        click.argument("ids", nargs=-1),
        click.option("--all", "everything", is_flag=True, help="All of them, without another filter."),
        click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
    ]

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return filters(json_option(click.pass_context(command)))

    return add


def parts_of(context: click.Context, *, schema: bool = True) -> Cronq:
    """Return the parts to work with: the app of `celery -A app cronq …`, or just the settings."""
    parts = cronq_of(given_app(context) or _settings_app())
    if schema:
        require_schema(parts.database)
    return parts


def given_app(context: click.Context) -> Celery | None:
    """Return the app of `celery -A app cronq …`; None: this is `cronq …`."""
    given = getattr(context.find_root().obj, "app", None)
    return given if isinstance(given, Celery) else None


def load_app(name: str) -> Celery:
    """Return the Celery app called `name`, as `celery -A name` finds it."""
    try:
        app: Celery = find_app(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.ClickException(f"there is no Celery app {name!r} here: {error}") from error
    return app


_app: list[Celery] = []


def _settings_app() -> Celery:
    if not _app:
        from cronq.app import configure  # noqa: PLC0415 - only needed without an app

        _app.append(configure(Celery("cronq", set_as_current=False)))
    return _app[0]


def print_json(value: Any) -> None:  # noqa: ANN401
    """Print `value`; instants as RFC 3339 in UTC."""
    click.echo(to_json(value, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as wide as the terminal, or as its content where there is none."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    table = Table(*columns, title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*("" if cell is None else Text(str(cell), STYLES.get(str(cell), "")) for cell in row))
    console.print(table)


def short_time(moment: datetime | None) -> str:
    """Return `moment` as it stands in a table."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def moment_of(stored: StoredSchedule, text: str) -> datetime:
    """Return the instant that `text` names on the schedule's clocks: an ISO time, or a time of today."""
    zone = ZoneInfo(tz_of(stored.timing))
    try:
        return moment_on(zone, text, datetime.now(UTC))
    except InvalidTiming as error:
        raise click.BadParameter(str(error)) from error


def json_value(option: str, text: str, kind: type) -> Any:  # noqa: ANN401
    """Return the JSON that an option was given, of the right kind."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not JSON ({error})", param_hint=option) from error
    if not isinstance(value, kind):
        raise click.BadParameter(f"{text!r} is not a JSON {kind.__name__}", param_hint=option)
    return value


class Span(click.ParamType):  # type: ignore[type-arg] # generic in newer click only
    """An option that is a length of time, such as 90s."""

    name = "duration"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the length of time that `value` names."""
        if isinstance(value, timedelta):
            return value
        try:
            return duration(value)
        except InvalidTiming as error:
            self.fail(f"{value!r}: {error.problem}; {error.suggestion}", param, ctx)


def choice_of(kind: type[StrEnum]) -> "click.Choice[str]":
    """Return the option type that takes the values of `kind`, as the API has them, in any case."""
    return click.Choice([each.value for each in kind], case_sensitive=False)


def complete_schedule(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of schedules that begin with `incomplete`, for the shell."""
    with contextlib.suppress(Exception):  # a shell that completes is no place for errors
        found = find_schedules(parts_of(context).database, text=incomplete, limit=COMPLETED)
        return [each.name for each in found if each.name.startswith(incomplete)]
    return []
