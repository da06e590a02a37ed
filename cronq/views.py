"""How a job, a schedule and the leader look to people: the same in the shell, in the API and on the page.

No secret passes: see `cronq.telemetry.masking`.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cronq.app import Cronq
from cronq.breaker import WELL, Breaker
from cronq.coordination.lock import lock_holder
from cronq.coordination.redis_client import RedisError
from cronq.store.batches import Batch, rate_of
from cronq.store.breakers import read_breakers
from cronq.store.database import Database
from cronq.store.dead import DeadLetter
from cronq.store.dead_messages import body_of
from cronq.store.definitions import to_data
from cronq.store.fires import Fire
from cronq.store.limits import keys_by_hand, read_definitions
from cronq.store.room import count_waiting
from cronq.store.schedules import StoredSchedule
from cronq.store.terms import read_term
from cronq.telemetry.masking import without_secrets

NOBODY_LEADS = "nobody leads; start a beat with: celery -A your.app beat -S cronq"


def job_fields(row: Mapping[Any, Any], live: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a job's row, with its `live` progress if it runs."""
    progress = dict(row["progress"] or {})
    if row["state"] == "RUNNING" and live:
        progress.update(live)
    return {
        "id": row["id"],
        "type": row["task"],
        "status": row["state"],
        "progress": progress.get("progress", 0),
        "created_at": row["planned_at"],
        "due_at": row["due_at"],
        "published_at": row["published_at"],
        "started_at": row["started_at"],
        "updated_at": row["updated_at"],
        "finished_at": row["finished_at"],
        "metadata": {name: progress.get(name) for name in ("current_step", "steps_completed", "steps_total")},
        "attempts": row["attempts"],
        "max_attempts": row["max_attempts"],
        "error": without_secrets(row["error"]),
        "kind": row["kind"],
        "result": without_secrets(row["result"]),
        "schedule": row["schedule_name"],
        "fire_time": row["fire_time"],
        "item": row["item"] or None,
        "batch": row["batch_id"],
        "trigger": row["trigger"],
        "reason": row["reason"],
        "waits_for": row["waits_for"] if row["state"] in ("SCHEDULED", "RETRYING") else None,
        "coalesced_into": row["coalesced_into"],
        "tenant": row["tenant"],
        "queue": row["queue"],
        "needs": row["needs"],
        "priority": row["priority"],
        "worker": row["worker"],
        "args": without_secrets(row["args"]),
        "kwargs": without_secrets(row["kwargs"]),
        "cancel_requested_at": row["cancel_requested_at"],
        "callback_url": without_secrets(row["callback_url"]),
    }


def batch_fields(database: Database, found: Batch) -> dict[str, Any]:
    """Return a batch: how far it is, how fast, and in how many seconds it should be at its end."""
    rate = 0.0 if found.ended_at is not None else rate_of(database, found)
    left = found.total - found.done
    return {
        "id": found.id,
        "schedule": found.schedule,
        "fire_time": found.fire_time,
        "type": found.task,
        "status": found.status,
        "total": found.total,
        "done": found.done,
        "failed": found.failed,
        "remaining": left,
        "progress": 100 * found.done // found.total if found.total else 0,
        "rate_per_s": round(rate, 1),
        "eta_s": None if left == 0 or rate == 0 or found.finding else round(left / rate),
        "counts": found.counts,
        "created_at": found.created_at,
        "paused_at": found.paused_at,
        "cancelled_at": found.cancelled_at,
        "ended_at": found.ended_at,
        "error": without_secrets(found.error),
        "on_complete": found.on_complete,
    }


def limit_fields(parts: Cronq) -> list[dict[str, Any]]:
    """Return each declared limit with what waits: a kind's counts all values without a limit of their own."""
    definitions = read_definitions(parts.database)
    waiting: Counter[str] = Counter()
    for key, count in count_waiting(parts.database).items():
        waiting[key if key in definitions else key.partition(":")[0]] += count
    breakers, by_hand = read_breakers(parts.database), keys_by_hand(parts.database)
    return [
        {"key": key, **given, "waiting": waiting[key]}
        | ({"by_hand": True} if key in by_hand else {})
        | ({"breaker": _breaker_fields(breakers.get(key, WELL))} if "break_after" in given else {})
        for key, given in definitions.items()
    ]


def _breaker_fields(breaker: Breaker) -> dict[str, Any]:
    return {
        "state": breaker.state,
        "failures": breaker.failures,
        "room": breaker.room,
        "until": breaker.until,
        "error": without_secrets(breaker.error),
    }


def attempt_fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return one finished attempt; its lease's token stays inside."""
    fields = {name: row[name] for name in ("number", "worker", "started_at", "ended_at", "outcome", "kind")}
    return fields | {"error": without_secrets(row["error"])}


def dead_fields(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as a line of a list; `show` it for the job or the message itself."""
    fields = {each.name: getattr(letter, each.name) for each in dataclasses.fields(letter)}
    return fields | {"error": without_secrets(letter.error)}


def dead_message_fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a dead message; of its body the text, as far as it is text."""
    names = ("id", "dead_at", "kind", "worker", "task", "message_id", "exchange", "routing_key", "copied_at")
    more = ("content_type", "content_encoding", "priority", "body_bytes")
    return {
        **{name: row[name] for name in (*names, *more)},
        "error": without_secrets(row["error"]),
        "headers": without_secrets(row["headers"]),
        "body": without_secrets(body_of(row).decode("utf-8", "replace")),
    }


def schedule_fields(stored: StoredSchedule) -> dict[str, Any]:
    """Return a schedule: what was declared, and where it stands."""
    declared = to_data(stored.definition)
    return {
        "id": stored.id,
        **declared,
        "args": without_secrets(declared["args"]),
        "kwargs": without_secrets(declared["kwargs"]),
        "fan_out": without_secrets(declared["fan_out"]),
        "callback_url": without_secrets(declared["callback_url"]),
        "version": stored.version,
        "source": stored.source,
        "next_fire_at": stored.next_fire_at,
        "paused_at": stored.paused_at,
        "pause_note": stored.pause_note,
        "retired_at": stored.retired_at,
        "fault": stored.fault,
    }


def fire_fields(fire: Fire) -> dict[str, Any]:
    """Return one fire time and what became of it."""
    return {
        "fire_time": fire.fire_time,
        "disposition": fire.disposition,
        "reason": fire.reason,
        "detail": fire.detail,
        "into": fire.into,
        "job": None if fire.job is None else job_fields(fire.job),
        "batch": None if fire.batch is None else _batch_in_short(fire.batch),
        "backfill": None if fire.backfill is None else job_fields(fire.backfill),
    }


def _batch_in_short(found: Batch) -> dict[str, Any]:
    names = ("id", "status", "total", "done", "failed", "ended_at")
    return {name: getattr(found, name) for name in names}


def leader_fields(parts: Cronq) -> dict[str, Any]:
    """Return who leads, and the beats that are alive; `confirmed` is False where only SQL could be asked."""
    term = read_term(parts.database, 0)
    redis_error = None
    try:
        holder = lock_holder(parts.redis, prefix=parts.settings.key_prefix, shard=0)
        beats = parts.beats.read()
    except RedisError as error:
        holder, beats, redis_error = None, [], str(error)
    known = term if term is not None and (holder == term.holder or redis_error is not None) else None
    return {
        "holder": known and known.holder,
        "host": known and known.host,
        "pid": known and known.pid,
        "term": known and known.term,
        "since": known and known.since,
        "confirmed": redis_error is None and known is not None,
        "redis_error": redis_error,
        "beats": beats,
    }


def live_progress(parts: Cronq, rows: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the live progress of those of `rows` that run; without Redis none, for SQL has the state."""
    try:
        return parts.board.read([row["id"] for row in rows if row["state"] == "RUNNING"])
    except RedisError:
        return {}


def last_line(text: str | None) -> str:
    """Return the last line of an error, which says most."""
    return text.strip().rsplit("\n", 1)[-1][:160] if text else ""


def to_json(value: Any, *, indent: int | None = None) -> str:  # noqa: ANN401
    """Return `value` as JSON; instants as RFC 3339 in UTC."""
    text = json.dumps(value, default=_plain, indent=indent, ensure_ascii=False)
    # JSON may name half of a surrogate pair, but UTF-8 has none: such a one stays written as its escape.
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def iso(moment: datetime) -> str:
    """Return `moment` as RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
