"""How much does each queue want, and does anybody serve it? From SQL, and what processes say."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from cronq.app import Cronq
from cronq.coordination.redis_client import RedisError
from cronq.coordination.roll_call import slots_by_queue
from cronq.delivery.message import routed_queue
from cronq.needs import PLACE, parse
from cronq.scaling import Load, wanted_slots
from cronq.store import overview
from cronq.store.load import load_by_queue
from cronq.store.room import count_waiting

LOAD_WINDOW_S: Final = 300.0
"""Seconds over which the load of a queue is measured."""


def wanted_by_queue(parts: Cronq) -> dict[str, int]:
    """Return how many jobs at a time each queue wants, by its name; the app routes jobs without one."""
    loads: defaultdict[str, list[Load]] = defaultdict(list)
    routes = _routes(parts)
    for (queue, task), load in load_by_queue(parts.database, window_s=LOAD_WINDOW_S).items():
        loads[queue or routes.get(task) or routed_queue(parts.app, task)].append(load)
    return {name: wanted_slots(load, window_s=LOAD_WINDOW_S) for name, load in loads.items()}


def unserved_fields(parts: Cronq) -> list[dict[str, Any]] | None:
    """Return how many due jobs wait for a worker that nobody hears of, by queue; None: Redis does not say.

    needs: of jobs that wait in SQL because no worker is at any of their places; else null.
    """
    try:
        slots = slots_by_queue(parts.workers.read())
    except RedisError:
        return None
    routes = _routes(parts)
    found: list[dict[str, Any]] = []
    for each in overview.queues(parts.database):
        queue = each.queue or routes.get(each.task)
        if not _served(slots, queue):
            facts = {"queue": queue, "task": each.task, "needs": None}
            found.append(facts | {"jobs": each.pending, "oldest": each.oldest})
    for key, count in count_waiting(parts.database).items():
        if key.startswith(PLACE) and not _at_any_place(slots, key[len(PLACE) :]):
            facts = {"queue": None, "task": None, "needs": key[len(PLACE) :]}
            found.append(facts | {"jobs": count, "oldest": None})
    return found


def unserved_sentence(facts: Mapping[str, Any]) -> str:
    """Say of one of them what is wrong."""
    jobs = f"{facts['jobs']} job{'' if facts['jobs'] == 1 else 's'}"
    of_what = "" if facts["task"] is None else f" of {facts['task']}"
    return f"{_nobody(facts['queue'], facts['needs'])}: {jobs}{of_what} wait"


def unserved_reason(parts: Cronq, row: Mapping[Any, Any]) -> str | None:
    """Say of a job that waits why no live worker can take it; None: one can, or nobody knows."""
    try:
        slots = slots_by_queue(parts.workers.read())
    except RedisError:
        return None
    if row["waits_for"] is not None:
        needs = row["waits_for"].removeprefix(PLACE)
        unserved = row["waits_for"].startswith(PLACE) and not _at_any_place(slots, needs)
        return _nobody(None, needs) if unserved else None
    queue = row["queue"] or _routes(parts).get(row["task"])
    return None if _served(slots, queue) else _nobody(queue, None)


def _served(slots: Mapping[str, int], queue: str | None) -> bool:
    # Where a task goes that no leader has routed is not known; without any worker it does not matter.
    return bool(slots.get(queue, 0) if queue is not None else slots)


def _at_any_place(slots: Mapping[str, int], needs: str) -> bool:
    return any(slots.get(queue) for queue in parse(needs).queues)


def _nobody(queue: str | None, needs: str | None) -> str:
    if needs is not None:
        return f"no live worker offers {needs}"
    return "no worker is alive" if queue is None else f"no live worker consumes the queue {queue}"


def _routes(parts: Cronq) -> dict[str, str]:
    """Return the queue of each task that the leader has routed: its app knows, this process's may not."""
    try:
        return dict(next(iter(parts.beats.read()), {}).get("routes", {}))
    except RedisError:
        return {}
