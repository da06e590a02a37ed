"""Change notices: wake the leader at once, or the next one. A lost notice costs a second, never a job."""

import contextlib
import json
from collections.abc import Callable
from typing import Any, Final

import redis

from cronq.coordination.listener import Listener
from cronq.coordination.redis_client import RedisError
from cronq.progress.channel import channel

NOTICES: Final = "notices"
RELEASED: Final = "released"
"""The kind of notice that says: the leader gave its lock back."""


def send_notice(client: redis.Redis, prefix: str, kind: str, **facts: str) -> None:
    """Tell whoever leads that something changed; if Redis is away, its next look finds it."""
    with contextlib.suppress(RedisError):
        client.publish(channel(client, prefix, NOTICES), json.dumps({"kind": kind, **facts}))


def listen_for_notices(
    client: redis.Redis, prefix: str, receive: Callable[[dict[str, Any]], None]
) -> Listener:
    """Return a listener that calls `receive` with every notice, and with `listening` after a gap."""

    def read(text: str) -> None:
        try:
            notice = json.loads(text)
        except ValueError:
            return  # not one of ours
        if isinstance(notice, dict) and "kind" in notice:
            receive(notice)

    return Listener(
        client, channel(client, prefix, NOTICES), read, opened=lambda: receive({"kind": "listening"})
    )
