"""`cronq check`: is everything set up right? Reports all that is wrong at once."""

import click
from celery import Celery

from cronq.app import Cronq
from cronq.beat.catalog import examine
from cronq.cli.common import given_app, load_app, parts_of, print_table
from cronq.errors import CronqError, SettingsError, first_line
from cronq.settings import PREFIX, Settings, hide_password, load_settings
from cronq.store.schema import require_schema


@click.command()
@click.option("-A", "--app", "app_name", help="Check this Celery app: its settings, broker and schedules.")
@click.option("--list", "list_settings", is_flag=True, help="List every setting with its value and meaning.")
@click.pass_context
def check(context: click.Context, *, app_name: str | None, list_settings: bool) -> None:
    """Check the settings, the database and Redis; of an app also the broker and the schedules.

    The app is that of -A, or of `celery -A app cronq check`; its own cronq_… settings count.
    """
    try:
        app = given_app(context) if app_name is None else load_app(app_name)
        settings = load_settings(None if app is None else app.conf)
    except SettingsError as error:
        for problem in error.problems:
            click.echo(f"✗ {problem}", err=True)
        context.exit(1)
    if list_settings:
        _list(settings)
        return
    parts = parts_of(context, schema=False) if app is None else Cronq(app, settings)
    problems = _store_problems(parts) + ([] if app is None else _app_problems(app, settings))
    for problem in problems:
        click.echo(f"✗ {problem}", err=True)
    if problems:
        context.exit(1)
    click.echo("✓ all is well")


def _store_problems(parts: Cronq) -> list[str]:
    problems = []
    try:
        require_schema(parts.database)
    except CronqError as error:
        problems.append(str(error))
    url = hide_password(parts.settings.redis_url)
    try:
        parts.redis.ping()
        policy = str(parts.redis.config_get("maxmemory-policy").get("maxmemory-policy", ""))
        if policy not in ("", "noeviction"):
            problems.append(
                f"Redis at {url} may evict the lock (maxmemory-policy {policy}); set it to noeviction"
            )
    except Exception as error:  # noqa: BLE001 - whatever Redis says is what the user wants to read
        problems.append(f"Redis at {url} does not answer: {first_line(error)}")
    return problems


def _app_problems(app: Celery, settings: Settings) -> list[str]:
    problems = []
    try:
        app.connection_for_write(connect_timeout=3).ensure_connection(max_retries=1, timeout=3)
    except Exception as error:  # noqa: BLE001 - as above
        broker = hide_password(str(app.conf.broker_url))
        problems.append(f"the broker at {broker} does not answer: {first_line(error)}")
    app.loader.import_default_modules()
    app.finalize()
    found, refused = examine(app, max_payload_bytes=settings.max_payload_bytes)
    problems += [f"schedule {name!r}: {why}" for name, why in refused]
    problems += [
        f"schedule {schedule.name!r}: this app has no task {schedule.task!r}; a worker must know it"
        for schedule in found
        if schedule.task not in app.tasks
    ]
    return problems


def _list(settings: Settings) -> None:
    print_table(
        "",
        ["SETTING", "VALUE", "MEANING"],
        [
            (PREFIX + name.upper(), hide_password(str(getattr(settings, name))), field.description)
            for name, field in Settings.model_fields.items()
        ],
    )
