"""Signs a webhook as Standard Webhooks 1.0 says, so that any of its libraries can check it.

Source: the specification at www.standardwebhooks.com, "Webhook signatures", symmetric.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime


def signed_headers(secrets: Sequence[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that say who sent `body` and when: one signature for each of `secrets`."""
    seconds = str(int(at.timestamp()))
    signed = b".".join([message_id.encode(), seconds.encode(), body])
    signatures = [
        base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode() for secret in secrets
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
