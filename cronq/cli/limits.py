"""`cronq limits`: what may run at a time and how fast, and who waits for it."""

from typing import Any

import click

from cronq.cli.common import json_option, json_value, parts_of, print_json, print_table, short_time
from cronq.store.limits import set_by_hand
from cronq.views import limit_fields


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def limits(context: click.Context, *, as_json: bool) -> None:
    """List the limits and tiers, and how many due jobs wait for room under each; or change one by hand."""
    if context.invoked_subcommand is not None:
        return
    items = limit_fields(parts_of(context))
    if as_json:
        print_json(items)
        return
    if not items:
        click.echo("nothing is limited; declare it with CRONQ_LIMITS or app.conf.cronq_limits")
        return
    print_table(
        "",
        ["KEY", "WAITING", "DECLARED", "BREAKER"],
        [
            (
                item["key"],
                item["waiting"] or "",
                ", ".join(f"{k} {v}" for k, v in item.items() if k not in {"key", "waiting", "breaker"}),
                _breaker(item.get("breaker")),
            )
            for item in items
        ],
    )


@limits.command("set")
@click.argument("key")
@click.argument("definition")
@click.pass_context
def set_limit(context: click.Context, *, key: str, definition: str) -> None:
    """Let DEFINITION (JSON, as it is declared) count for KEY, whatever the code says, until `unset`."""
    given = json_value("DEFINITION", definition, dict)
    try:
        set_by_hand(parts_of(context).database, key, given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{key} is set; beats and workers go by it within five seconds")


@limits.command()
@click.argument("key")
@click.pass_context
def unset(context: click.Context, *, key: str) -> None:
    """Let what the code declares for KEY count again, if it declares anything."""
    if not set_by_hand(parts_of(context).database, key, None):
        raise click.ClickException(f"{key} was not set by hand")
    click.echo(f"{key} is as the code declares it, within five seconds")


def _breaker(facts: dict[str, Any] | None) -> str:
    if facts is None or not facts["failures"]:
        return ""
    until = "" if facts["until"] is None else f" until {short_time(facts['until'])}"
    return f"{facts['state']}{until}, {facts['failures']} failures in a row: {facts['error']}"
