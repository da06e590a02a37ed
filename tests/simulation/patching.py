"""Puts simulated time, threads and chance under cronq's own modules; the code itself runs as it is."""

import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from cronq import app, failpoints
from cronq.clock import StoreClock
from cronq.telemetry.log import EventLogger
from cronq.upkeep.job_rescuer import JobRescuer

from .kernel import Event, Kernel, Thread


class Stage:
    """What cronq's modules see of the world in place of the standard library; one for all simulations."""

    kernel: Kernel
    open_redis: Callable[..., Any]
    open_database: Callable[..., Any]
    open_publisher: Callable[..., Any]
    collect: Callable[..., Any]


stage = Stage()


class SimulatedTime:
    """The `time` module."""

    @staticmethod
    def monotonic() -> float:
        kernel = stage.kernel
        return kernel.now + 1000.0 - kernel.current.process.started_at

    @staticmethod
    def time() -> float:
        return stage.kernel.process().wall()

    @staticmethod
    def sleep(seconds: float) -> None:
        stage.kernel.pause(seconds)


class SimulatedThread:
    """`threading.Thread`."""

    def __init__(self, *, target: Callable[[], None], name: str, daemon: bool) -> None:
        assert daemon, "a thread that keeps its process alive cannot be killed with it"
        self._target, self._name = target, name
        self._thread: Thread | None = None

    def start(self) -> None:
        process = stage.kernel.process()
        self._thread = stage.kernel.start(process, self._target, f"{process.name}/{self._name}")

    def is_alive(self) -> bool:
        return self._thread is not None and not self._thread.ended

    def join(self, timeout: float) -> None:
        kernel, thread = stage.kernel, self._thread
        if thread is not None and not thread.ended:
            assert kernel.current is not None
            thread.joined.append(kernel.current)
            kernel.pause(timeout)


class SimulatedThreading:
    """The `threading` module."""

    Lock = threading.Lock  # nobody waits while holding one, so nobody ever waits for one
    Thread = SimulatedThread

    @staticmethod
    def Event() -> Event:  # noqa: N802 - the name of the class that it stands for
        return Event(stage.kernel)

    @staticmethod
    def current_thread() -> None:
        return None


class SimulatedUuid:
    """The `uuid` module."""

    UUID = uuid.UUID

    @staticmethod
    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=stage.kernel.random.getrandbits(128))


class SimulatedRandom:
    """The `random` module."""

    @staticmethod
    def random() -> float:
        return stage.kernel.random.random()


class SimulatedSecrets:
    """The `secrets` module."""

    @staticmethod
    def token_hex(count: int) -> str:
        return stage.kernel.random.randbytes(count).hex()


class NoGarbage:
    """The `gc` module: nothing here is large enough for a collection to matter."""

    @staticmethod
    def collect() -> None:
        pass

    enable = disable = freeze = collect

    @staticmethod
    def get_threshold() -> tuple[int, int, int]:
        return 1, 1, 1

    @staticmethod
    def set_threshold(*_: int) -> None:
        pass


class Nothing:
    """In place of what only shows things to people: it takes every call, and does nothing."""

    def __init__(self, *_anything: Any, **_more: Any) -> None:
        pass

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_anything, **_more: None


REPLACED: dict[str, tuple[Any, Any]] = {
    "time": (time, SimulatedTime),
    "threading": (threading, SimulatedThreading),
    "random": (random, SimulatedRandom),
    "gc": (sys.modules.get("gc"), NoGarbage),
}


def cronq_modules() -> list[ModuleType]:
    """Return every module of cronq that is loaded."""
    return [module for name, module in sys.modules.items() if name.startswith("cronq.")]


@contextmanager
def on_stage() -> Iterator[None]:
    """Let every module of cronq see the simulated world until the end of the block."""
    before: list[tuple[Any, str, Any]] = []

    def put(where: Any, name: str, what: Any) -> None:
        before.append((where, name, getattr(where, name)))
        setattr(where, name, what)

    for module in cronq_modules():
        for name, (real, simulated) in REPLACED.items():
            if getattr(module, name, None) is real and module is not failpoints:
                put(module, name, simulated)
        if getattr(module, "failpoint", None) is failpoints.failpoint and module is not failpoints:
            put(module, "failpoint", lambda _name: stage.kernel.process().step())
    put(StoreClock.__init__, "__defaults__", (SimulatedTime.monotonic, SimulatedTime.time))
    put(JobRescuer.__init__, "__defaults__", (SimulatedTime.monotonic,))
    put(sys.modules["cronq.worker.attempt"], "uuid", SimulatedUuid)
    put(app, "secrets", SimulatedSecrets)
    put(app, "open_redis", lambda _url, timeout_s=1.0: stage.open_redis(timeout_s))
    put(app, "Database", lambda *_how, **_more: stage.open_database())
    put(app, "open_publisher", lambda *_how, **_more: stage.open_publisher())
    for shown in ("RollCall", "DeadLetterKeeper", "DeadLetterQueue"):
        put(app, shown, Nothing)
    put(app, "collect", lambda *_how, **_more: stage.collect())
    put(EventLogger, "_write", _write)
    put(EventLogger, "warning_once", EventLogger.warning)
    try:
        yield
    finally:
        for where, name, what in reversed(before):
            setattr(where, name, what)


def _write(
    _logger: EventLogger, _level: int, event: str, facts: dict[str, Any], *, exc_info: bool = False
) -> None:
    if exc_info:
        facts = {**facts, "raised": sys.exception()}
    stage.kernel.note(event, **facts)
