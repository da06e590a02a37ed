"""`cronq leader`: who leads?"""

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.coordination.lock import lock_holder
from cronq.coordination.redis_client import RedisError
from cronq.store.terms import read_term


@click.command()
@json_option
@click.pass_context
def leader(context: click.Context, *, as_json: bool) -> None:
    """Show who leads, since when, in which term, and every beat's clock.

    Exit code 1 if nobody leads.
    """
    parts = parts_of(context)
    term = read_term(parts.database, 0)
    redis_error = None
    try:
        holder = lock_holder(parts.redis, prefix=parts.settings.key_prefix, shard=0)
        beats = parts.beats.read()
    except RedisError as error:
        holder, beats, redis_error = None, [], str(error)
    leads = term is not None and (holder == term.holder or redis_error is not None)
    if as_json:
        known = term if leads else None
        print_json(
            {
                "holder": known and known.holder,
                "host": known and known.host,
                "pid": known and known.pid,
                "term": known and known.term,
                "since": known and known.since,
                "confirmed": redis_error is None and leads,
                "beats": beats,
            }
        )
    elif term is not None and leads:
        unsure = f" (Redis does not answer: {redis_error}; this is what SQL knows)" if redis_error else ""
        click.echo(f"{term.holder} leads in term {term.term} since {short_time(term.since)}{unsure}")
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
                for b in beats
            ],
        )
    else:
        click.echo("nobody leads; start a beat with: celery -A your.app beat -S cronq", err=True)
    if not leads:
        context.exit(1)
