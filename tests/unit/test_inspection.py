"""A message that a worker can run passes; of any other it is said what is wrong with it."""

import json
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from kombu.message import Message

from cronq.delivery.inspection import examine
from cronq.delivery.message import EMBED_BYTES
from cronq.retry import Kind

KNOWN = {"shop.charge"}
HEADERS = {"id": "j1", "task": "shop.charge"}
LIMIT = 1000


def message(body: Any = ((), {}, {}), headers: Any = HEADERS) -> Message:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Message(
        body=text,
        content_type="application/json",
        content_encoding="utf-8",
        headers=headers,
        accept={"application/json"},
    )


@pytest.mark.parametrize(
    "good",
    [
        message(),
        message([[1], {"k": 2}, None]),
        message(headers={**HEADERS, "timelimit": [30, None], "shadow": "nightly", "cronq": {"v": 1}}),
        message({"args": [1], "kwargs": {}}),
        message({"task": "shop.charge", "id": "j1", "args": [], "kwargs": {}}, {}),
        message([["x" * 5000], {}, {}]),
    ],
    ids=["plain", "arguments", "headers", "hybrid", "first protocol", "large, but no job"],
)
def test_what_celery_can_run_passes(good: Message) -> None:
    assert examine(good, KNOWN, LIMIT) is None


@pytest.mark.parametrize(
    ("bad", "kind", "word"),
    [
        (message(b"{"), Kind.UNDECODABLE, "cannot be read"),
        (message(b"\xff\xfe"), Kind.UNDECODABLE, "cannot be read"),
        (message(7), Kind.MALFORMED, "a int, not a list"),
        (message(None), Kind.MALFORMED, "a NoneType"),
        (message([]), Kind.MALFORMED, "a list of 0"),
        (message([[], {}]), Kind.MALFORMED, "a list of 2"),
        (message([{}, {}, {}]), Kind.MALFORMED, "arguments are a dict"),
        (message([[], [], {}]), Kind.MALFORMED, "keyword arguments are a list"),
        (message({"kwargs": {}}), Kind.MALFORMED, "a dict, not a list"),
        (message(headers={}), Kind.MALFORMED, "name a task"),
        (message({"task": 7, "id": "x"}, {}), Kind.MALFORMED, "task is a int"),
        (message(headers={**HEADERS, "task": ["a"]}), Kind.MALFORMED, "task is a list"),
        (message(headers={"task": "shop.charge"}), Kind.MALFORMED, "id is a NoneType"),
        (message(headers={**HEADERS, "shadow": []}), Kind.MALFORMED, "shadow is a list"),
        (message(headers={**HEADERS, "timelimit": "soon"}), Kind.MALFORMED, "timelimit"),
        (message(headers={**HEADERS, "timelimit": [1, 2, 3]}), Kind.MALFORMED, "timelimit"),
        (message(headers={**HEADERS, "cronq": "?"}), Kind.MALFORMED, "header 'cronq' is a str"),
        (message(headers={**HEADERS, "task": "shop.refund"}), Kind.UNKNOWN_TASK, "'shop.refund'"),
        (
            message([["x" * (LIMIT + EMBED_BYTES)], {}, {}], {**HEADERS, "cronq": {"v": 1}}),
            Kind.OVERSIZED,
            "over the limit of 1000",
        ),
    ],
)
def test_what_would_end_a_worker_or_could_not_run_is_refused_with_a_reason(
    bad: Message, kind: Kind, word: str
) -> None:
    fault = examine(bad, KNOWN, LIMIT)
    assert fault is not None
    assert fault.kind is kind
    assert word in fault.why


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(["task", "id", "shadow", "timelimit", "cronq", "eta"])


@given(body=ANYTHING, headers=st.dictionaries(NAMES, ANYTHING) | ANYTHING)
def test_nothing_that_arrives_makes_the_look_at_it_fail(body: Any, headers: Any) -> None:
    odd = SimpleNamespace(headers=headers, body=b"x", payload=body)
    examine(odd, KNOWN, LIMIT)
