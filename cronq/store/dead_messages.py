"""Messages that are no jobs and that nobody can run: kept until somebody sends them back or discards them."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import RowMapping, delete, insert, select, tuple_

from cronq.job import uuid7
from cronq.store.attempts import storable
from cronq.store.database import Database
from cronq.store.tables import dead_message

KEPT_BYTES: Final = 262_144
"""Of a body; what is larger is cut, and cannot be sent back."""
KEPT_MESSAGES: Final = 10_000
"""The oldest beyond them are dropped: anybody who may write to the broker can write any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A message as it came, and why nobody can run it."""

    kind: str
    error: str
    body: bytes
    worker: str | None = None
    task: str | None = None
    message_id: str | None = None
    exchange: str = ""
    routing_key: str = ""
    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] = field(default_factory=dict)
    priority: int | None = None


def record_message(database: Database, message: DeadMessage) -> str:
    """Store a message, and return the id that it gets."""
    dead_id = str(uuid7())
    values = {
        "id": dead_id,
        "dead_at": database.now(),
        "kind": message.kind,
        "error": storable(message.error),
        "headers": json.loads(storable(json.dumps(message.headers, default=repr)) or "{}"),
        "priority": message.priority,
        "body": base64.b64encode(message.body[:KEPT_BYTES]).decode(),
        "body_bytes": len(message.body),
    }
    for name in ("worker", "task", "message_id", "content_type", "content_encoding"):
        text = getattr(message, name)
        values[name] = None if text is None else (storable(str(text)) or "")[:255]
    for name in ("exchange", "routing_key"):
        values[name] = (storable(str(getattr(message, name))) or "")[:255]
    with database.autocommit() as connection:
        connection.execute(insert(dead_message).values(values))
    return dead_id


def get_message(database: Database, dead_id: str) -> RowMapping | None:
    """Return one message's row; None: there is none, or somebody asked for it to be gone."""
    query = select(dead_message).where(dead_message.c.id == dead_id, dead_message.c.wish.is_(None))
    with database.autocommit() as connection:
        return connection.execute(query).mappings().one_or_none()


def may_be_sent_back(row: Mapping[Any, Any]) -> bool:
    """Tell whether the message is whole, and where it came from is known."""
    return bool(row["routing_key"]) and row["body_bytes"] <= KEPT_BYTES


def body_of(row: Mapping[Any, Any]) -> bytes:
    """Return what is kept of a message's body."""
    return base64.b64decode(row["body"])


def remove_message(database: Database, dead_id: str) -> None:
    """Forget a message: what was asked for it is done."""
    with database.autocommit() as connection:
        connection.execute(delete(dead_message).where(dead_message.c.id == dead_id))


def drop_oldest_messages(database: Database, *, keep: int = KEPT_MESSAGES) -> int:
    """Drop all but the newest `keep` messages; return how many were dropped."""
    place = tuple_(dead_message.c.dead_at, dead_message.c.id)
    newest_first = (dead_message.c.dead_at.desc(), dead_message.c.id.desc())
    newest_dropped = select(dead_message.c.dead_at, dead_message.c.id).order_by(*newest_first)
    with database.autocommit() as connection:
        bound = connection.execute(newest_dropped.offset(keep).limit(1)).one_or_none()
        if bound is None:
            return 0
        return int(connection.execute(delete(dead_message).where(place <= tuple(bound))).rowcount)
