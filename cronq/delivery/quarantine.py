"""Keeps a message that is none from ending a worker.

kombu's Redis transport takes an envelope apart in the worker's event loop: text that is not JSON, not an
object, or whose body is not base64 raises there, ends the worker, and the message is gone. Here such a text
is put aside, and Celery is handed an empty message of an unknown kind, which it refuses and drops.
"""

import base64
import contextlib
import functools
import json
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import redis
from kombu.transport import redis as transport

from cronq.telemetry.log import get_logger

CONTENT_TYPE = "application/x-cronq-malformed"
KEPT = 1000
MAX_KEPT_BYTES = 65_536

log = get_logger(__name__)


def guard_redis_transport(keep: Callable[[str], None]) -> None:
    """Make the transport of this process survive malformed messages; `keep` is given each one's text."""
    plain = transport.loads
    if getattr(plain, "guarded", False):
        return

    def loads(text: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - kombu's own signature
        if not _receiving.get():
            return plain(text, *args, **kwargs)
        try:
            envelope = plain(text, *args, **kwargs)
            check_envelope(envelope)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it must not end the worker
            return _put_aside(str(text), error, keep)
        return envelope

    loads.guarded = True  # type: ignore[attr-defined]
    transport.loads = loads
    for name in ("_brpop_read", "_get"):
        setattr(transport.Channel, name, _marked(getattr(transport.Channel, name)))


_receiving: ContextVar[bool] = ContextVar("cronq_receiving", default=False)
"""Set while a message is taken off a queue: kombu reads its own bookkeeping with the same function."""


def _marked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def marked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        token = _receiving.set(True)
        try:
            return method(*args, **kwargs)
        finally:
            _receiving.reset(token)

    return marked


def check_envelope(envelope: Any) -> None:  # noqa: ANN401 - decoded JSON is anything until it is checked
    """Raise unless kombu can take `envelope` apart."""
    if isinstance(envelope, list) and len(envelope) == len(("message", "exchange", "routing key")):
        # kombu's note of an unacknowledged message; a shutdown puts it back in the middle of a receive.
        envelope = envelope[0]
    _require(envelope, dict, "envelope")
    _require(envelope.get("headers") or {}, dict, "value of headers")
    properties = _require(envelope["properties"], dict, "value of properties")
    _require(properties["delivery_tag"], str, "delivery tag")
    origin = _require(properties["delivery_info"], dict, "value of delivery_info")
    for name in ("exchange", "routing_key"):
        _require(origin[name], str, name)
    encoding, body = properties.get("body_encoding"), envelope.get("body")
    if encoding not in (None, "base64"):
        raise ValueError(f"the body_encoding is {encoding!r}")
    if body and encoding == "base64":
        base64.b64decode(body, validate=True)


def _require(value: Any, kind: type, name: str) -> Any:  # noqa: ANN401
    if not isinstance(value, kind):
        raise TypeError(f"the {name} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def keep_malformed(client: redis.Redis, prefix: str, text: str) -> None:
    """Put what `guard_redis_transport` found where the leader looks for it; the newest `KEPT` stay."""
    key = f"{prefix}malformed"
    with contextlib.suppress(redis.RedisError), client.pipeline(transaction=False) as pipeline:
        pipeline.lpush(key, text)
        pipeline.ltrim(key, 0, KEPT - 1)
        pipeline.execute()


def read_malformed(client: redis.Redis, prefix: str) -> dict[str, str] | None:
    """Return the oldest of them (`error`, `text`), or None; it stays until `drop_malformed`."""
    try:
        entry = client.lindex(f"{prefix}malformed", -1)
    except redis.RedisError:
        return None  # it is found when Redis is back
    found: dict[str, str] | None = None if entry is None else json.loads(entry)
    return found


def drop_malformed(client: redis.Redis, prefix: str) -> None:
    """Remove the oldest of them."""
    client.rpop(f"{prefix}malformed")


def _put_aside(text: str, error: Exception, keep: Callable[[str], None]) -> dict[str, Any]:
    log.error(
        "message.malformed",
        error=f"{type(error).__name__}: {error}",
        bytes=len(text),
        consequence="it is put aside, and the worker goes on",
    )
    keep(json.dumps({"error": repr(error), "text": text[:MAX_KEPT_BYTES]}))
    return {
        "body": base64.b64encode(b"malformed").decode(),
        "content-type": CONTENT_TYPE,
        "content-encoding": "utf-8",
        "headers": {},
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": str(uuid.uuid4()),
            "delivery_info": {"exchange": "", "routing_key": ""},
        },
    }
