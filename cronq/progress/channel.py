"""The name of a channel of Redis: its prefix, and its database's number."""

import redis


def channel(client: redis.Redis, prefix: str, name: str) -> str:
    """Return what to publish to and to subscribe to.

    Redis keeps keys apart by database and messages not at all: two deployments on one server would hear
    each other.
    """
    number = client.get_connection_kwargs().get("db") or 0
    return f"{prefix}{name}:{number}"
