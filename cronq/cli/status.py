"""`cronq status`: how everything stands, in one look."""

from datetime import timedelta
from typing import Any

import click

from cronq.app import Cronq
from cronq.cli.common import json_option, parts_of, print_json, print_table
from cronq.coordination.redis_client import RedisError
from cronq.queues import unserved_fields, unserved_sentence
from cronq.store import overview
from cronq.store.dead import DeadFilter, count_dead_letters
from cronq.views import NOBODY_LEADS, leader_fields

HOUR = timedelta(hours=1)
COUNTED = 1000


@click.command()
@json_option
@click.pass_context
def status(context: click.Context, *, as_json: bool) -> None:
    """Say who leads and works, what goes on, what ended within the hour, and what is overdue.

    Exit code 1 if nobody leads, no worker is alive, something is overdue, or no live worker can take it.
    """
    facts = _facts(parts_of(context))
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if facts["troubles"]:
        context.exit(1)


def _facts(parts: Cronq) -> dict[str, Any]:
    database, leader = parts.database, leader_fields(parts)
    try:
        workers = [each["holder"] for each in parts.workers.read()]
    except RedisError:
        workers = None
    facts = {
        "leader": leader["holder"],
        "term": leader["term"],
        "beats": len(leader["beats"]),
        "workers": workers,
        "schedules": dict(overview.count_schedules(database)),
        "jobs": overview.count_unfinished(database),
        "last_hour": overview.count_ended(database, HOUR),
        "queues": [
            {"queue": each.queue, "task": each.task, "pending": each.pending, "oldest": each.oldest}
            for each in overview.queues(database)
        ],
        "dead_letters": count_dead_letters(database, DeadFilter()),
        "overdue_jobs": len(overview.overdue_jobs(database, COUNTED)),
        "overdue_schedules": len(overview.overdue_schedules(database, COUNTED)),
        "unserved": unserved_fields(parts),
    }
    return facts | {"troubles": _troubles(facts, leader["redis_error"])}


def _troubles(facts: dict[str, Any], redis_error: str | None) -> list[str]:
    troubles = []
    if redis_error is not None:
        troubles.append(f"Redis does not answer: {redis_error}")
    if facts["leader"] is None:
        troubles.append(NOBODY_LEADS)
    if facts["workers"] == []:
        troubles.append("no worker is alive; start one with: celery -A your.app worker")
    troubles += map(unserved_sentence, facts["unserved"] or ())
    overdue = ("overdue_jobs", "overdue_schedules")
    return troubles + [f"{name.replace('_', ' ')}: {facts[name]}" for name in overdue if facts[name]]


def _print(facts: dict[str, Any]) -> None:
    leader = "nobody" if facts["leader"] is None else f"{facts['leader']}, term {facts['term']}"
    if facts["workers"] is None:  # Redis does not answer
        leader, workers = f"not known; the last was {leader}", "not known"
    else:
        workers = ", ".join(facts["workers"]) or "none"
    rows = [
        ("leader", leader),
        ("beats", facts["beats"]),
        ("workers", workers),
        ("schedules", _counts(facts["schedules"])),
        ("jobs", _counts(facts["jobs"]) or "none under way"),
        ("last hour", _counts(facts["last_hour"]) or "nothing ended"),
        ("dead letters", facts["dead_letters"]),
    ]
    rows += [(f"waits: {each['queue'] or each['task']}", each["pending"]) for each in facts["queues"]]
    print_table("", ["NOW", ""], rows)
    for trouble in facts["troubles"]:
        click.echo(f"✗ {trouble}", err=True)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.lower().replace('_', ' ')}" for name, count in counts.items())
