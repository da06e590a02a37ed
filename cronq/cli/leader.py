"""`cronq leader`: who leads, since when, and whether the clocks agree."""

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.views import leader_fields


@click.command()
@json_option
@click.pass_context
def leader(context: click.Context, *, as_json: bool) -> None:
    """Show who leads, since when, in which term, and every beat's clock.

    Exit code 1 if nobody leads, or if that cannot be seen because Redis does not answer.
    """
    facts = leader_fields(parts_of(context))
    held, leads = facts["holder"], facts["confirmed"]
    if as_json:
        print_json({name: value for name, value in facts.items() if name != "redis_error"})
    elif leads:
        click.echo(f"{held} leads in term {facts['term']} since {short_time(facts['since'])}")
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
    elif held is not None:
        click.echo(
            f"whether anybody leads cannot be seen: Redis does not answer ({facts['redis_error']}). "
            f"Term {facts['term']}, the last, has been {held}'s since {short_time(facts['since'])}",
            err=True,
        )
    else:
        click.echo("nobody leads; start a beat with: celery -A your.app beat -S cronq", err=True)
    if not leads:
        context.exit(1)
