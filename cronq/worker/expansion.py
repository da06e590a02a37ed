"""Finds the items of a fan-out and adds a job for each: the work of a batch's first job.

They are streamed: a million of them take no more memory than a thousand. An attempt that dies is made again
from the start, and what it added already stays as it is: an item's job has one id, whoever adds it.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from cronq import progress
from cronq.context import lease
from cronq.errors import JobRefused, Permanent
from cronq.failpoints import failpoint
from cronq.job import Trigger, item_job_id
from cronq.schedule import Overlap, Schedule
from cronq.store.agenda import DueJob
from cronq.store.batch_steps import add_items, begin_batch
from cronq.store.database import Database
from cronq.store.items import query_items
from cronq.store.jobs import check_payload
from cronq.store.schedules import LONGEST_NAME
from cronq.timing import group_offset, jitter, timing_from

CHUNK: Final = 500
OF_AN_ITEM: Final = frozenset({"item", "kwargs", "tenant", "callback_url"})
LONGEST_ITEM: Final = 200


class BadItem(Permanent):
    """What a fan-out's function, query or list gave is no item; another attempt would meet it again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item: what makes it another one, what its job is given, and whose it is."""

    key: str
    value: Any
    kwargs: dict[str, Any] = field(default_factory=dict)
    tenant: str | None = None
    callback_url: str | None = None


def expand(database: Database, head_id: str, *, max_payload_bytes: int) -> dict[str, int]:
    """Add a job for each item of the batch of `head_id`; return how many there are, and how many are new."""
    token = lease.get()
    head, declared = begin_batch(database, head_id)
    due = DueTimes(head, declared, database.clock())
    found = added = 0
    progress.update(0, None, "finding the items")
    items = iter(find_items(declared.fan_out or {}, max_payload_bytes))
    while chunk := [job_of_item(head, item, due) for item in islice(items, CHUNK)]:
        added += add_items(database, head_id, chunk, token=token)
        found += len(chunk)
        progress.update(found)
        failpoint("mid_expansion")
    return {"items": found, "new": added}


def find_items(source: Mapping[str, Any], max_payload_bytes: int) -> Iterator[Item]:
    """Yield the items of a fan-out's list, function or query (see `cronq.declaration.fan_out_of`)."""
    for value in _values(source):
        yield _item(value, max_payload_bytes)


def _values(source: Mapping[str, Any]) -> Iterable[Any]:
    if "items" in source:
        return list(source["items"])
    if "query" in source:
        return query_items(source["query"], source["database"])
    module, _, name = source["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadItem(f"this worker has no function {source['function']!r}: {error}") from error
    values: Iterable[Any] = function(**source.get("kwargs", {}))
    return values


def _item(value: Any, max_payload_bytes: int) -> Item:  # noqa: ANN401 - whatever the user's source gives
    if isinstance(value, Mapping):
        if unknown := sorted(set(value) - OF_AN_ITEM):
            raise BadItem(f"an item has no {unknown[0]!r}; it has {', '.join(sorted(OF_AN_ITEM))}")
        given: Mapping[str, Any] = value
    else:
        given = {"item": value}
    inner, kwargs = given.get("item"), dict(given.get("kwargs") or {})
    if not isinstance(inner, str | int) or isinstance(inner, bool):
        raise BadItem(f"{value!r:.200} is no item: give a text, a number, or a dict with one as 'item'")
    key = str(inner)
    if not 0 < len(key) <= LONGEST_ITEM or "\0" in key:
        raise BadItem(f"the item {key[:80]!r} has {len(key)} characters; 1 to {LONGEST_ITEM} without NUL fit")
    if kwargs:
        try:
            check_payload([], kwargs, max_payload_bytes)
        except JobRefused as error:
            raise BadItem(f"the item {key!r}: {error}") from error
    tenant = given.get("tenant")
    return Item(
        key,
        inner,
        kwargs,
        tenant=None if tenant is None else str(tenant)[:LONGEST_NAME],
        callback_url=given.get("callback_url"),
    )


class DueTimes:
    """When a batch's items are due: at its fire time, or now if it has passed, with a jitter of their own."""

    def __init__(self, head: DueJob, declared: Schedule, now: datetime) -> None:
        planned = head.trigger is Trigger.SCHEDULE and head.fire_time is not None
        fire_time = head.fire_time if planned and head.fire_time is not None else now
        following = timing_from(declared.timing).next(fire_time) if planned else None
        spread = declared.spread if following is None else min(declared.spread, following - fire_time)
        offset = group_offset(declared.id, spread)
        self._start, self._fire_time = fire_time + offset, fire_time
        self._left = None if following is None else following - offset
        self._jitter, self._key = declared.jitter, declared.id

    def of(self, item: str) -> datetime:
        """Return when `item` is due."""
        if not self._jitter:
            return self._start
        return self._start + jitter(f"{self._key}\0{item}", self._fire_time, self._jitter, self._left)


def job_of_item(head: DueJob, item: Item, due: DueTimes) -> DueJob:
    """Return the job of one item of the batch of `head`."""
    assert head.schedule_id is not None
    # A backfill's items are others than those that the fire time had.
    key = f"{head.item} {item.key}" if head.item else item.key
    return DueJob(
        id=item_job_id(head.schedule_id, head.fire_time, head.id, key),
        schedule_id=head.schedule_id,
        schedule_name=head.schedule_name,
        schedule_version=head.schedule_version,
        fire_time=head.fire_time,
        item=key,
        batch_id=head.id,
        trigger=head.trigger,
        task=head.task,
        args=[item.value, *head.args],
        kwargs={**head.kwargs, **item.kwargs},
        queue=head.queue,
        needs=head.needs,
        priority=head.priority,
        tenant=item.tenant or head.tenant,
        # What may overlap is decided for the batch as a whole, when its first job is published.
        overlap=Overlap.ALLOW,
        max_attempts=head.max_attempts,
        callback_url=item.callback_url,
        due_at=due.of(item.key),
    )
