"""What is no message is told apart from what is."""

import base64

import pytest

from cronq.delivery.quarantine import check_envelope

GOOD = {
    "body": base64.b64encode(b"[]").decode(),
    "properties": {"delivery_tag": "t", "body_encoding": "base64", "delivery_info": {}},
}


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
        {"properties": {"delivery_tag": 7}},
        {**GOOD, "body": "%%%"},
    ],
)
def test_what_would_end_a_worker_is_refused(envelope):
    with pytest.raises(Exception):  # noqa: B017, PT011 - any refusal will do: the caller takes them all
        check_envelope(envelope)
