"""What is no message is told apart from what is."""

import base64

import pytest

from cronq.delivery.quarantine import check_envelope

ORIGIN = {"exchange": "", "routing_key": "celery"}
PROPERTIES = {"delivery_tag": "t", "body_encoding": "base64", "delivery_info": ORIGIN}
GOOD = {"body": base64.b64encode(b"[]").decode(), "headers": {}, "properties": PROPERTIES}


def test_an_envelope_as_kombu_writes_it_passes():
    check_envelope(GOOD)
    check_envelope([GOOD, "exchange", "key"])


@pytest.mark.parametrize(
    "envelope",
    [
        42,
        None,
        "text",
        [],
        {},
        {"properties": {}},
        {**GOOD, "headers": [1]},
        {**GOOD, "properties": []},
        {**GOOD, "properties": {**PROPERTIES, "delivery_tag": 7}},
        {**GOOD, "properties": {**PROPERTIES, "delivery_info": None}},
        {**GOOD, "properties": {**PROPERTIES, "delivery_info": {"exchange": ""}}},
        {**GOOD, "properties": {**PROPERTIES, "body_encoding": "rot13"}},
        {**GOOD, "body": "%%%"},
    ],
)
def test_what_would_end_a_worker_is_refused(envelope):
    with pytest.raises(Exception):  # noqa: B017, PT011 - any refusal will do: the caller takes them all
        check_envelope(envelope)
