"""One simulated machine room: its clock, and whose turn it is. Everything random comes from one seed.

Every thread of every simulated process is a greenlet. One runs until it waits for something (an answer, a
moment, an event); what waits for the same instant goes on in random order.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from greenlet import getcurrent, greenlet

START: Final = 1_800_000_000.0
"""The instant at which most simulations begin, in seconds since the epoch."""
PAUSE_SHARE: Final = 0.5
LONG_SHARE: Final = 0.02


class Killed(BaseException):
    """The process of this greenlet was killed: nothing of it goes on."""


@dataclass(slots=True, eq=False)
class Ambush:
    """What happens to a process at one of its next steps."""

    steps: int  #: how many steps from now
    kind: str  #: kill, freeze or deaf (the answer to its next question gets lost)
    lasts_s: float = 0.0


@dataclass(slots=True, eq=False)
class Process:
    """One process: its clocks, its links, and what is done to it."""

    name: str
    kernel: "Kernel"
    alive: bool = True
    frozen_until: float = 0.0
    cut: dict[str, float] = field(default_factory=dict)  #: store → until when it cannot be reached
    wall_offset: float = 0.0
    started_at: float = 0.0
    ambush: Ambush | None = None
    deaf: bool = False
    threads: list["Thread"] = field(default_factory=list)
    in_transaction: Callable[[], None] | None = None  #: ends the transaction that this process is in
    parts: Any = None  #: what runs in it: a Beat, or a worker's desk

    def monotonic(self) -> float:
        """Count from this process's own zero: no two processes' counts compare."""
        return self.kernel.now - self.started_at + 1000.0

    def wall(self) -> float:
        return self.kernel.now + self.wall_offset

    def reaches(self, store: str) -> bool:
        if not self.cut and not self.kernel.outages:
            return True
        return self.cut.get(store, 0.0) <= self.kernel.now and not self.kernel.is_down(store)

    def step(self) -> None:
        """Note that this process is about to do something that others can see."""
        ambush = self.ambush
        if ambush is None:
            return
        ambush.steps -= 1
        if ambush.steps > 0:
            return
        self.ambush = None
        self.kernel.note(f"ambush.{ambush.kind}", process=self.name)
        match ambush.kind:
            case "kill":
                self.kill()
            case "freeze":
                self.freeze(ambush.lasts_s)
            case _:
                self.deaf = True

    def freeze(self, lasts_s: float) -> None:
        """Stop every thread where it stands, as SIGSTOP does; clocks go on."""
        self.frozen_until = max(self.frozen_until, self.kernel.now + lasts_s)
        current = self.kernel.current
        if current is not None and current.process is self:
            if self.in_transaction is not None:
                self.in_transaction()
            self.kernel.pause(0.0)

    def kill(self) -> None:
        """End every thread where it stands, as SIGKILL does."""
        self.alive = False
        current = self.kernel.current
        for thread in list(self.threads):
            if thread is not current:
                thread.kill()
        if current is not None and current.process is self:
            raise Killed


class Thread:
    """One thread of a process."""

    def __init__(self, process: Process, run: Callable[[], None], name: str) -> None:
        self.process, self.run, self.name = process, run, name
        self.turn = 0  #: which of its waits it is in; a wake-up for an earlier one is void
        self.ended = False
        self.joined: list[Thread] = []
        self.greenlet = greenlet(self._main, process.kernel.hub)
        process.threads.append(self)

    def _main(self) -> None:
        try:
            self.run()
        except Killed:
            pass
        except Exception as error:  # noqa: BLE001 - that a thread ends by itself is what the judge looks for
            self.process.kernel.on_crash(self, error)
        finally:
            self.ended = True
            self.process.threads.remove(self)
            for waiting in self.joined:
                self.process.kernel.wake(waiting, self.process.kernel.now)

    def kill(self) -> None:
        kernel = self.process.kernel
        if not self.greenlet and not self.greenlet.dead:
            self.ended = True  # it never ran
            self.process.threads.remove(self)
            return
        before, kernel.current = kernel.current, self
        self.greenlet.parent = getcurrent()
        self.greenlet.throw(Killed)
        kernel.current = before


class Kernel:
    """Decides who runs next, and when it is."""

    def __init__(self, seed: int, began: float = START) -> None:
        self.random = random.Random(seed)
        self.now = self.began = began
        self.current: Thread | None = None
        self.hub = getcurrent()
        self.outages: dict[str, float] = {}  #: store → until when nobody can reach it
        self.on_crash: Callable[[Thread, Exception], None] = lambda _thread, _error: None
        self.note: Callable[..., None] = lambda _event, **_facts: None
        self._queue: list[tuple[float, float, int, Thread | None, Any]] = []
        self._count = 0

    def is_down(self, store: str) -> bool:
        return self.outages.get(store, 0.0) > self.now

    def process(self) -> Process:
        """Return the process that runs now."""
        assert self.current is not None
        return self.current.process

    def start(self, process: Process, run: Callable[[], None], name: str) -> Thread:
        thread = Thread(process, run, name)
        self.wake(thread, self.now)
        return thread

    def wake(self, thread: Thread, at: float) -> None:
        """Let `thread` go on at `at`, unless something else lets it go on before."""
        self._push(at, thread, thread.turn)

    def call(self, at: float, what: Callable[[], None]) -> None:
        """Do `what` at `at`, outside of every process."""
        self._push(at, None, what)

    def pause(self, seconds: float) -> None:
        """Let the others run for `seconds`."""
        assert self.current is not None
        self.wake(self.current, self.now + seconds)
        self.wait()

    def linger(self, seconds: float, *, at_worst_s: float | None = None) -> None:
        """Take up to `seconds`; often next to no time, so that nobody gets in between; rarely the worst."""
        chance = self.random.random()
        if chance < LONG_SHARE and at_worst_s is not None:
            self.pause(chance / LONG_SHARE * at_worst_s)
        elif chance < PAUSE_SHARE:
            self.pause(chance / PAUSE_SHARE * seconds)

    def wait(self) -> None:
        """Let the others run until somebody wakes this thread."""
        thread = self.current
        assert thread is not None
        if not thread.process.alive:
            raise Killed
        self.hub.switch()
        self.current = thread

    def run_until(self, end: float) -> None:
        """Let everybody run until `end`."""
        while self._queue and self._queue[0][0] <= end:
            at, _tie, _count, thread, what = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            if thread is None:
                what()
            elif what == thread.turn and not thread.ended:
                self._resume(thread)
        self.now = max(self.now, end)

    def _resume(self, thread: Thread) -> None:
        process = thread.process
        if process.frozen_until > self.now:
            self.wake(thread, process.frozen_until)
            return
        thread.turn += 1
        self.current = thread
        thread.greenlet.switch()
        self.current = None

    def _push(self, at: float, thread: Thread | None, what: Any) -> None:
        self._count += 1
        heapq.heappush(self._queue, (at, self.random.random(), self._count, thread, what))


class Event:
    """`threading.Event`, for simulated threads."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._set = kernel, False
        self._waiting: list[Thread] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            self._kernel.wake(thread, self._kernel.now)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._kernel.current
        assert thread is not None
        if not self._set:
            self._waiting.append(thread)
            if timeout is not None:
                self._kernel.wake(thread, self._kernel.now + timeout)
            self._kernel.wait()
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._set
