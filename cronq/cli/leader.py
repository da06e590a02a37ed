"""`cronq leader`: who leads, since when, and whether the clocks agree."""

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.views import leader_fields


@click.command()
@json_option
@click.pass_context
def leader(context: click.Context, *, as_json: bool) -> None:
    """Show who leads, since when, in which term, and every beat's clock.

    Exit code 1 if nobody leads.
    """
    facts = leader_fields(parts_of(context))
    leads = facts["holder"] is not None
    if as_json:
        print_json({name: value for name, value in facts.items() if name != "redis_error"})
    elif leads:
        unsure = ""
        if facts["redis_error"] is not None:
            unsure = f" (Redis does not answer: {facts['redis_error']}; this is what SQL knows)"
        since = short_time(facts["since"])
        click.echo(f"{facts['holder']} leads in term {facts['term']} since {since}{unsure}")
        print_table(
            "",
            ["BEAT", "HOST", "PID", "LEADS", "CLOCK OFFSET"],
            [
                (
                    b["holder"],
                    b["host"],
                    b["pid"],
                    "yes" if b["leads"] else "",
                    f"{b['clock_offset_s']:+.3f} s",
                )
                for b in facts["beats"]
            ],
        )
    else:
        click.echo("nobody leads; start a beat with: celery -A your.app beat -S cronq", err=True)
    if not leads:
        context.exit(1)
