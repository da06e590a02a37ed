"""`cronq limits`: what may run at a time and how fast, and who waits for it."""

from typing import Any

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.views import limit_fields


@click.command()
@json_option
@click.pass_context
def limits(context: click.Context, *, as_json: bool) -> None:
    """List the declared limits and tiers, and how many due jobs wait for room under each."""
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


def _breaker(facts: dict[str, Any] | None) -> str:
    if facts is None or not facts["failures"]:
        return ""
    until = "" if facts["until"] is None else f" until {short_time(facts['until'])}"
    return f"{facts['state']}{until}, {facts['failures']} failures in a row: {facts['error']}"
