"""Opens Redis, with time-outs that fit a lock of a second or two."""

from importlib import resources

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

RedisError = redis.RedisError


def open_redis(url: str, *, timeout_s: float = 1.0) -> redis.Redis:
    """Return a client for `url`; nothing is connected yet.

    No command is repeated by the client: whoever sent it knows whether sending it twice is safe.
    """
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
    )


def lua(name: str) -> str:
    """Return the source of one script of `lua/`."""
    return resources.files("cronq.coordination").joinpath("lua", f"{name}.lua").read_text()
