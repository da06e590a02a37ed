"""Which schedules does this deploy declare? Collects them from code, and takes them over into SQL.

A deploy changes, adds and retires its own schedules and touches nobody else's. Of two beats that run
different deploys, the newer one's schedules stay.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.schedules import schedule as celery_interval
from sqlalchemy import Connection

from cronq.beat.dependencies import link
from cronq.declaration import When, declared, names_of
from cronq.errors import JobRefused
from cronq.schedule import Schedule
from cronq.store.database import Database
from cronq.store.deploys import read_stamp, write_stamp
from cronq.store.jobs import check_payload
from cronq.store.schedules import (
    Change,
    StoredSchedule,
    check_schedule,
    owners_of,
    retire,
    source_of,
    write_changes,
)
from cronq.store.terms import Term, hold_term
from cronq.telemetry.log import get_logger
from cronq.timing import Cron, Every, InvalidTiming, after_end, timing_from
from cronq.timing.explain import explain
from cronq.webhooks.address import check_url

log = get_logger(__name__)


def collect(app: Celery, *, max_payload_bytes: int) -> list[Schedule]:
    """Return every schedule that the app's code declares. A wrong one is logged, and left out alone."""
    found, refused = examine(app, max_payload_bytes=max_payload_bytes)
    for name, why in refused:
        log.error("schedule.refused", schedule=name, error=why, consequence="the other schedules go on")
    return found


def examine(app: Celery, *, max_payload_bytes: int) -> tuple[list[Schedule], list[tuple[str, str]]]:
    """Return the schedules that the app's code declares, and (name, why not) of those that cannot be."""
    decorated, refused = _decorated()
    listed = [
        (str(name), entry, "in beat_schedule") for name, entry in sorted(app.conf.beat_schedule.items())
    ]
    found: dict[str, Schedule] = {}
    taken: dict[str, str] = {}
    for name, entry, where in [*decorated, *listed]:
        try:
            _take_name(taken, name, f"{entry['task']} ({where})")
            schedule = _from_entry(app, name, entry)
            check_payload([*schedule.args, schedule.fan_out], schedule.kwargs, max_payload_bytes)
            check_schedule(schedule)
            if schedule.callback_url is not None:
                check_url(schedule.callback_url)
            found[schedule.name] = schedule
        except (InvalidTiming, JobRefused, TypeError, ValueError, KeyError) as error:
            refused.append((name, str(error)))
    linked, unlinked = link(found.values())
    return linked, [*refused, *unlinked]


def _decorated() -> tuple[list[tuple[str, Any, str]], list[tuple[str, str]]]:
    """Return (name, entry, where) of what decorators declared, and (name, why not) of what is no task."""
    pairs, refused = [], []
    for when, task in declared:
        if isinstance(getattr(task, "name", None), str):
            pairs.append((when, task.name))
        else:
            what = f"{getattr(task, '__module__', '')}.{getattr(task, '__qualname__', task)}"
            why = f"{what} is no task where it is scheduled: write @every and the like above @app.task"
            refused.append((when.name or what, why))
    named = zip(names_of(pairs), pairs, strict=True)
    return [(name, {"task": task, "schedule": when}, "decorated") for name, (when, task) in named], refused


def _take_name(taken: dict[str, str], name: str, owner: str) -> None:
    """Give `name` to `owner`; raise ValueError if another has it."""
    if taken.setdefault(name, owner) is not owner:
        raise ValueError(
            f"the schedule of {taken[name]} has this name already; give that of {owner} another one"
        )


def take_over(
    database: Database,
    schedules: Iterable[Schedule],
    *,
    term: Term,
    source: str,
    stamp: str,
    now: datetime,
) -> bool:
    """Make SQL's schedules of `source` the declared ones; False if a newer deploy has done so already."""
    wanted = {schedule.id: schedule for schedule in schedules if _storable(schedule)}
    # Read and compared before the transaction: ten thousand schedules take seconds, and PostgreSQL ends a
    # session that is idle in a transaction for so long. No other leader can write in between: the term.
    with database.autocommit() as connection:
        stored = source_of(connection, source)
        owners = owners_of(connection, [i for i in wanted if i not in stored])
    changes = _changes(wanted, stored, owners, source=source, now=now)
    gone = [i for i, known in stored.items() if i not in wanted and known.retired_at is None]
    with database.begin() as connection:
        hold_term(connection, term)
        if _is_older(connection, source, stamp):
            return False
        write_changes(database, connection, changes, source=source, actor=f"deploy {stamp}", shard=term.shard)
        retire(database, connection, gone)
        write_stamp(database, connection, source, stamp)
    log.info(
        "deploy.taken_over", source=source, declared=len(wanted), changed=len(changes), retired=len(gone)
    )
    return True


def _is_older(connection: Connection, source: str, stamp: str) -> bool:
    """Tell whether a deploy newer than `stamp` has taken over, and say so."""
    newest = read_stamp(connection, source)
    if newest is None or newest <= stamp:
        return False
    log.warning(
        "deploy.older", source=source, ours=stamp, newest=newest, consequence="the newer schedules stay"
    )
    return True


def _changes(
    wanted: Mapping[str, Schedule],
    stored: Mapping[str, StoredSchedule],
    owners: Mapping[str, str],
    *,
    source: str,
    now: datetime,
) -> list[Change]:
    """Return what has to be written so that the stored schedules are the wanted ones."""
    changes = []
    for schedule in wanted.values():
        owner, known = owners.get(schedule.id, source), stored.get(schedule.id)
        if owner != source:
            log.error(
                "schedule.refused",
                schedule=schedule.name,
                error=f"{owner} has a schedule of this name",
                consequence="that one stays; rename yours",
            )
            continue
        alive = known is not None and known.retired_at is None and known.fault is None
        if known is None or not alive or known.definition != schedule:
            same_timing = alive and known is not None and known.definition.timing == schedule.timing
            change = _change(schedule, restart=not same_timing, now=now)
            changes.append(change)
            if change.restart and change.first_fire_at is None:
                log.warning(
                    "schedule.never_runs",
                    schedule=schedule.name,
                    timing=explain(timing_from(schedule.timing)),
                    consequence="no fire time of it lies ahead, so it never runs",
                )
    return changes


def _storable(schedule: Schedule) -> bool:
    try:
        check_schedule(schedule)
    except JobRefused as error:
        log.error(  # noqa: TRY400 - the sentence says it
            "schedule.refused", schedule=schedule.name[:80], error=str(error), consequence="the others go on"
        )
        return False
    return True


def _change(schedule: Schedule, *, restart: bool, now: datetime) -> Change:
    timing = timing_from(schedule.timing)
    follows = after_end(timing, now)
    delay_s = None if follows is None else (follows - now).total_seconds()
    first = timing.next(now) or follows
    return Change(schedule, first_fire_at=first, restart=restart, delay_s=delay_s)


def _from_entry(app: Celery, name: str, entry: Any) -> Schedule:  # noqa: ANN401 - the user's own dict
    options = dict(entry.get("options") or {})
    when = _when(app, entry["schedule"])
    given: dict[str, Any] = {}
    if "args" in entry:
        given["args"] = tuple(entry["args"] or ())
    if "kwargs" in entry:
        given["kwargs"] = dict(entry["kwargs"] or {})
    for option in ("queue", "priority"):
        if options.get(option) is not None:
            given[option] = options.pop(option)
    ignored = sorted(set(options) - {"headers", "expires"})
    if ignored:
        log.warning("schedule.options_ignored", schedule=name, options=", ".join(ignored))
    return when.schedule(name=name, task=str(entry["task"]), **given)


def _when(app: Celery, schedule: Any) -> When:  # noqa: ANN401 - whatever beat_schedule allows
    if isinstance(schedule, When):
        return schedule
    if isinstance(schedule, crontab):
        fields = (
            schedule._orig_minute,  # noqa: SLF001 - the text that was given; the sets lose the steps
            schedule._orig_hour,  # noqa: SLF001
            schedule._orig_day_of_month,  # noqa: SLF001
            schedule._orig_month_of_year,  # noqa: SLF001
            schedule._orig_day_of_week,  # noqa: SLF001
        )
        # Celery runs on days that match both day fields, where other crons take either.
        return When(Cron(" ".join(map(_field, fields)), str(app.timezone), day="and"))
    if isinstance(schedule, celery_interval):
        return When(Every(schedule.run_every))
    if isinstance(schedule, timedelta):
        return When(Every(schedule))
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return When(Every(timedelta(seconds=schedule)))
    raise TypeError(f"{type(schedule).__name__} is not a kind of schedule that cronq knows")


def _field(given: Any) -> str:  # noqa: ANN401 - crontab takes a number, a text or an iterable
    if isinstance(given, str):
        return given.replace(" ", "")
    return str(given) if isinstance(given, int) else ",".join(map(str, sorted(given)))
