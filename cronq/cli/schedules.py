"""`cronq schedules`: what is due, and when."""

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.store.schedules import StoredSchedule, list_schedules, to_data


@click.group()
def schedules() -> None:
    """Look at schedules."""


@schedules.command("list")
@click.option("--retired", is_flag=True, help="Also those that no code declares any more.")
@json_option
@click.pass_context
def list_command(context: click.Context, *, retired: bool, as_json: bool) -> None:
    """List schedules by name."""
    stored = list_schedules(parts_of(context).database, retired=retired)
    if as_json:
        print_json({"items": [schedule_fields(each) for each in stored]})
        return
    print_table(
        "",
        ["NAME", "TASK", "TIMING", "NEXT FIRE TIME", "OVERLAP", "CATCH-UP", "STATE"],
        [
            (
                each.name,
                each.definition.task,
                _timing(each),
                short_time(each.next_fire_at),
                each.definition.overlap,
                each.definition.catch_up,
                _state(each),
            )
            for each in stored
        ],
    )


def schedule_fields(stored: StoredSchedule) -> dict[str, object]:
    """Return a schedule as the command line and the API show it."""
    return {
        "id": stored.id,
        **to_data(stored.definition),
        "version": stored.version,
        "source": stored.source,
        "next_fire_at": stored.next_fire_at,
        "paused_at": stored.paused_at,
        "pause_note": stored.pause_note,
        "retired_at": stored.retired_at,
        "fault": stored.fault,
    }


def _timing(stored: StoredSchedule) -> str:
    data = dict(stored.definition.timing)
    kind = data.pop("kind")
    return f"{kind} " + " ".join(str(value) for value in data.values())


def _state(stored: StoredSchedule) -> str:
    if stored.retired_at is not None:
        return "retired"
    if stored.fault is not None:
        return f"set aside: {stored.fault}"
    return f"paused: {stored.pause_note or ''}" if stored.paused_at is not None else ""
