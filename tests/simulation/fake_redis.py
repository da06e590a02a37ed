"""Redis for simulated processes: the few commands that the lock, the notices and the roll call use.

`test_redis_is_like_redis` holds it to the real one.
"""

from collections.abc import Callable
from typing import Any, Self

import redis

from cronq.coordination.redis_client import lua

from .kernel import Event, Kernel, Process


class RedisServer:
    """One Redis. Its keys run out by its own wall clock, as the real one's do."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.clock_offset = 0.0
        self.emptied_at = float("-inf")  #: or when a jump of its clock ended keys early
        self.renewed: dict[str, bool] = {}  #: by holder: whether it heard that it has the lock, the last time
        self.subscribers: list[PubSub] = []
        self.on_taken: Callable[[str], None] = lambda _holder: None
        self._keys: dict[str, tuple[str, float]] = {}

    def clock(self) -> float:
        return self.kernel.now + self.clock_offset

    def empty(self) -> None:
        self._keys.clear()
        self.emptied_at = self.kernel.now

    def jump(self, seconds: float) -> None:
        self.clock_offset += seconds
        self.emptied_at = self.kernel.now

    def get(self, key: str) -> str | None:
        value, until = self._keys.get(key, (None, 0.0))
        return value if until > self.clock() else None

    def left_s(self, key: str) -> float:
        """Return how much longer a key lives."""
        return 0.0 if self.get(key) is None else self._keys[key][1] - self.clock()

    def cut(self, key: str, lives_s: float) -> None:
        """Let a key live no longer than this."""
        value, until = self._keys[key]
        self._keys[key] = value, min(until, self.clock() + lives_s)

    def set(self, key: str, value: str, *, lives_s: float, only_new: bool = False) -> bool:
        if only_new and self.get(key) is not None:
            return False
        self._keys[key] = value, self.clock() + lives_s
        if only_new:
            self.on_taken(value)
        return True

    def delete(self, key: str) -> int:
        return 0 if self._keys.pop(key, None) is None else 1

    def publish(self, channel: str, text: str) -> int:
        heard = [each for each in self.subscribers if each.channel == channel]
        for each in heard:
            each.hear(text)
        return len(heard)


def _take(server: RedisServer, key: str, holder: str, ttl_ms: int) -> int:
    if server.set(key, holder, lives_s=ttl_ms / 1000, only_new=True):
        return 1
    server.cut(key, ttl_ms / 1000)
    return 0


def _renew(server: RedisServer, key: str, holder: str, ttl_ms: int) -> int:
    held_by = server.get(key)
    if held_by is not None and held_by != holder:
        return 0
    server.set(key, holder, lives_s=ttl_ms / 1000)
    return 1 if held_by == holder else 2


def _release(server: RedisServer, key: str, holder: str) -> int:
    return server.delete(key) if server.get(key) == holder else 0


SCRIPTS = {lua("take_lock"): _take, lua("renew_lock"): _renew, lua("release_lock"): _release}
"""What each script of cronq does."""


class RedisClient:
    """One process's way to the server."""

    def __init__(self, server: RedisServer, process: Process, timeout_s: float) -> None:
        self._server, self._process, self._timeout_s = server, process, timeout_s

    def time(self) -> tuple[int, int]:
        now = self._call(self._server.clock)
        return int(now), int(now % 1 * 1e6)

    def get_connection_kwargs(self) -> dict[str, Any]:
        return {}

    def publish(self, channel: str, text: str) -> int:
        kernel, server = self._server.kernel, self._server
        if kernel.random.random() < 0.1:
            return self._call(lambda: 0)  # it got lost, or nobody listened just then
        count: int = self._call(lambda: server.publish(channel, text))
        return count

    def register_script(self, text: str) -> Callable[..., int]:
        script = SCRIPTS[text]

        def run(keys: list[str], args: list[Any]) -> int:
            self._server.renewed[args[0]] = False
            done: int = self._call(lambda: script(self._server, *keys, *args))
            self._server.renewed[args[0]] = done == 1
            return done

        return run

    def pubsub(self, *, ignore_subscribe_messages: bool) -> "PubSub":
        assert ignore_subscribe_messages
        return PubSub(self._server, self._process)

    def _call(self, what: Callable[[], Any]) -> Any:
        kernel, process = self._server.kernel, self._process
        kernel.linger(0.001)
        process.step()
        if not process.reaches("redis"):
            kernel.pause(kernel.random.choice((0.0, self._timeout_s)))
            raise redis.ConnectionError("no answer")
        answer = what()
        process.step()
        kernel.linger(0.001, at_worst_s=self._timeout_s)
        if process.deaf or not process.reaches("redis"):
            process.deaf = False
            raise redis.TimeoutError("the connection broke before the answer came")
        return answer


class PubSub:
    """One subscription."""

    def __init__(self, server: RedisServer, process: Process) -> None:
        self._server, self._process = server, process
        self._heard: list[str] = []
        self._something = Event(server.kernel)
        self.channel: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self in self._server.subscribers:
            self._server.subscribers.remove(self)

    def subscribe(self, channel: str) -> None:
        self._reach()
        self.channel = channel
        self._server.subscribers.append(self)

    def hear(self, text: str) -> None:
        if self._process.alive and self._process.reaches("redis"):
            self._heard.append(text)
            self._something.set()

    def get_message(self, timeout: float) -> dict[str, str] | None:
        if not self._heard:
            self._something.wait(timeout)
        self._something.clear()
        self._reach()
        return {"type": "message", "data": self._heard.pop(0)} if self._heard else None

    def _reach(self) -> None:
        if not self._process.reaches("redis"):
            raise redis.ConnectionError("no answer")
