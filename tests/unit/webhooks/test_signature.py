"""What a receiver checks with a library of Standard Webhooks is right; what was changed on the way is not."""

import base64
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from cronq.webhooks.deliver import WAITS_S, wait_s
from cronq.webhooks.signature import signed_headers

OLD, NEW = b"o" * 24, b"n" * 32
BODY = json.dumps({"type": "job.completed"}).encode()


def written(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_the_library_takes_it_with_each_secret(secret):
    headers = signed_headers([OLD, NEW], "msg-1", datetime.now(UTC), BODY)
    assert Webhook(written(secret)).verify(BODY, headers) == {"type": "job.completed"}


def test_it_does_not_take_another_body_another_id_or_another_secret():
    headers = signed_headers([OLD], "msg-1", datetime.now(UTC), BODY)
    for secret, changed, body in [
        (OLD, {}, BODY + b" "),
        (OLD, {"webhook-id": "msg-2"}, BODY),
        (NEW, {}, BODY),
    ]:
        with pytest.raises(WebhookVerificationError):
            Webhook(written(secret)).verify(body, headers | changed)


def test_the_waits_grow_over_a_day_and_begin_anew_after_an_operators_retry():
    attempts = len(WAITS_S) + 1
    assert [wait_s(number, attempts) for number in range(1, attempts)] == list(WAITS_S)
    assert sum(WAITS_S) > 24 * 3600
    again = attempts + attempts
    assert wait_s(attempts + 1, again) == WAITS_S[0]
