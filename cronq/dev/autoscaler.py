"""Starts and stops workers of the stack by the signal that a cluster would scale them by."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cronq.app import Cronq
from cronq.coordination.redis_client import RedisError
from cronq.dev.stack import Stack
from cronq.queues import wanted_by_queue
from cronq.scaling import Scaler

LOOK_S: Final = 1.0


@dataclass(slots=True)
class Autoscaler:
    """Keeps as many workers as the queues that they consume want, from `least` to `most`."""

    stack: Stack
    parts: Cronq
    scaler: Scaler
    tell: Callable[[str], None]
    _next: float = field(default=0.0, init=False)

    def look(self) -> None:
        """Look, at most once a second; without a word from any worker nothing is changed."""
        now = time.monotonic()
        if now < self._next or self.scaler.least == self.scaler.most:
            return
        self._next = now + LOOK_S
        try:
            notes = self.parts.workers.read()
        except RedisError:
            return
        each = max((int(note.get("slots", 0)) for note in notes), default=0)
        if not each:
            return
        consumed = {queue for note in notes for queue in note.get("queues", ())}
        wanted = wanted_by_queue(self.parts)
        slots = sum(count for queue, count in wanted.items() if queue in consumed)
        running = len(self.stack.workers())
        self._move(self.scaler.workers(slots, each=each, running=running, now=now), running, slots)

    def _move(self, workers: int, running: int, slots: int) -> None:
        for _ in range(running, workers):
            self.tell(f"{self.stack.start_worker().name} starts; wanted jobs at a time: {slots}")
        for _ in range(workers, running):
            name = self.stack.stop_worker().name
            self.tell(f"{name} stops when its jobs are done; wanted jobs at a time: {slots}")
