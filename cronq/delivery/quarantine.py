"""Keeps a message that is none from ending a worker.

kombu's Redis transport takes an envelope apart in the worker's event loop: text that is not JSON, not an
object, or whose body is not base64 raises there, ends the worker, and the message is gone. Here such a text
is put aside, and Celery is handed an empty message of an unknown kind, which it refuses and drops.
"""

import base64
import functools
import json
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

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
    if not isinstance(envelope, dict):
        raise TypeError(f"the envelope is a {type(envelope).__name__}, not an object")
    properties = envelope["properties"]
    if not isinstance(properties["delivery_tag"], str):
        raise TypeError("the delivery tag is not a text")
    if properties.get("body_encoding") == "base64" and envelope.get("body"):
        base64.b64decode(envelope["body"], validate=True)


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
