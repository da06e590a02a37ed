"""`cronq …`, and the same as `celery -A app cronq …`."""

import contextlib
import importlib
import sys
from typing import Any

import click

from cronq.activation import activate
from cronq.errors import CronqError, SchemaError, SettingsError, StoreUnavailable, VersionConflict

activate()

COMMANDS = {
    "api": "cronq.cli.api:api",
    "backfills": "cronq.cli.backfills:backfills",
    "batches": "cronq.cli.batches:batches",
    "check": "cronq.cli.check:check",
    "db": "cronq.cli.db:db",
    "dead": "cronq.cli.dead:dead",
    "enqueue": "cronq.cli.enqueue:enqueue_command",
    "explain": "cronq.cli.explain:explain",
    "heatmap": "cronq.cli.heatmap:heatmap",
    "jobs": "cronq.cli.jobs:jobs",
    "leader": "cronq.cli.leader:leader",
    "limits": "cronq.cli.limits:limits",
    "next": "cronq.cli.next:next_command",
    "status": "cronq.cli.status:status",
    "schedules": "cronq.cli.schedules:schedules",
    "token": "cronq.cli.token:token",
    "up": "cronq.cli.up:up",
    "why": "cronq.cli.schedules:why_command",
}
"""Each command's module is imported when it is used: Celery imports this file in every worker."""


FAILED, UNKNOWN, REFUSED, UNAVAILABLE = 1, 3, 4, 5
"""Exit codes; 2 is click's own for a command that was typed wrongly. docs/cli.md explains them."""


def exit_code(error: CronqError) -> int:
    """Return the exit code that tells a program what kind of error it was."""
    if isinstance(error, LookupError):
        return UNKNOWN
    if isinstance(error, SchemaError | StoreUnavailable | SettingsError):
        return UNAVAILABLE
    if isinstance(error, VersionConflict | ValueError):
        return REFUSED
    return FAILED


class LazyGroup(click.Group):
    """Finds its commands in `COMMANDS`; says what went wrong in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the command; an error of ours is a message and an exit code, not a traceback."""
        try:
            return super().invoke(ctx)
        except CronqError as error:
            click.echo(f"cronq: {error}", err=True)
            ctx.exit(exit_code(error))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="celery-cronq", prog_name="cronq")
def cronq() -> None:
    """Distributed cron for Celery."""


def _join_flower() -> None:
    """Put our tab into Flower, where this process is about to become one."""
    if "flower" in sys.argv[1:]:
        with contextlib.suppress(ModuleNotFoundError):
            from cronq.flower_tab import install  # noqa: PLC0415 - only there

            install()


_join_flower()


def main() -> None:
    """Run the command line."""
    sys.path.insert(0, "")  # as `celery -A` does: the app is looked for where the user stands
    cronq(prog_name="cronq")
