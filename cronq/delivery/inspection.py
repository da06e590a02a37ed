"""Tells whether a message is one that a worker can run, before Celery takes it apart.

Celery reads headers and body in the worker's event loop, and much that is odd about them raises there and
ends the worker. What is refused here never gets that far.
"""

from collections.abc import Container, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Final

from cronq.delivery.message import EMBED_BYTES, HEADER
from cronq.retry import Kind

_PARTS: Final = 3  # of a body: the arguments, the keyword arguments, and what Celery adds
_LIMITS: Final = 2  # of `timelimit`: hard and soft


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a message."""

    kind: Kind
    why: str


def examine(message: Any, known: Container[str], max_payload_bytes: int) -> Fault | None:  # noqa: ANN401
    """Return what is wrong with `message` (kombu's), or None. known: the tasks of this worker."""
    headers = message.headers
    if not isinstance(headers, Mapping):
        return _malformed(f"the headers are a {type(headers).__name__}, not an object")
    ours = headers.get(HEADER)
    if (
        ours is not None
        and isinstance(message.body, Sized)
        and len(message.body) > max_payload_bytes + EMBED_BYTES
    ):
        return Fault(
            Kind.OVERSIZED,
            f"the body is {len(message.body)} bytes, over the limit of {max_payload_bytes} "
            "(CRONQ_MAX_PAYLOAD_BYTES)",
        )
    try:
        payload = message.payload
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it must not end the worker
        return Fault(Kind.UNDECODABLE, f"the body cannot be read: {type(error).__name__}: {error}")
    return _examine(headers, ours, payload, known)


def _examine(headers: Mapping[str, Any], ours: Any, payload: Any, known: Container[str]) -> Fault | None:  # noqa: ANN401
    if "task" in headers:
        facts, wrong = headers, _wrong_body(payload)
    elif isinstance(payload, Mapping) and "task" in payload:  # Celery's first protocol: all in the body
        facts, wrong = payload, _wrong_arguments(payload.get("args", ()), payload.get("kwargs", {}))
    else:
        return _malformed("neither its headers nor its body name a task")
    wrong = wrong or _wrong_facts(facts)
    if wrong is None and ours is not None and not isinstance(ours, Mapping):
        wrong = f"the header {HEADER!r} is a {type(ours).__name__}, not an object"
    if wrong is not None:
        return _malformed(wrong)
    if facts["task"] not in known:
        return Fault(
            Kind.UNKNOWN_TASK,
            f"there is no task {facts['task']!r} here; start a worker that imports it on this queue, or "
            "correct the name",
        )
    return None


def _wrong_body(payload: Any) -> str | None:  # noqa: ANN401
    if isinstance(payload, Mapping) and "args" in payload:  # what some other clients send
        return _wrong_arguments(payload["args"], payload.get("kwargs", {}))
    if not isinstance(payload, (list, tuple)):
        return f"the body is a {type(payload).__name__}, not a list"
    if len(payload) != _PARTS:
        return f"the body is a list of {len(payload)}, not of arguments, keyword arguments and the rest"
    return _wrong_arguments(payload[0], payload[1])


def _wrong_arguments(args: Any, kwargs: Any) -> str | None:  # noqa: ANN401
    if not isinstance(args, (list, tuple)):
        return f"the arguments are a {type(args).__name__}, not a list"
    if not isinstance(kwargs, Mapping):
        return f"the keyword arguments are a {type(kwargs).__name__}, not an object"
    return None


def _wrong_facts(facts: Mapping[str, Any]) -> str | None:
    for name in ("task", "id"):
        if not isinstance(facts.get(name), str):
            return f"its {name} is a {type(facts.get(name)).__name__}, not a text"
    if not isinstance(facts.get("shadow"), str | None):
        return f"its shadow is a {type(facts['shadow']).__name__}, not a text"
    limits = facts.get("timelimit")
    if limits is not None and not (
        isinstance(limits, (list, tuple))
        and len(limits) == _LIMITS
        and all(isinstance(limit, (int, float, type(None))) for limit in limits)
    ):
        return "its timelimit is not a pair of seconds"
    return None


def _malformed(why: str) -> Fault:
    return Fault(Kind.MALFORMED, why)
