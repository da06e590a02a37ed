"""A broker for simulated processes: it delays, doubles, reorders and loses what it carries or hands over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cronq.delivery.failure import PublishFailed
from cronq.delivery.message import _facts, iso
from cronq.store.agenda import DueJob

from .kernel import Kernel, Process, Thread

QUEUE: Final = "celery"
LOST_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker gets."""

    job_id: str
    facts: dict[str, Any]


class Broker:
    """One queue. What a worker took is gone, as on Redis, and as after an early acknowledgement."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.took: set[str] = set()  #: every job whose message was ever taken in
        self.delay_until = 0.0  #: until when what arrives is held up
        self.double_until = 0.0
        self.forget_until = 0.0  #: until when some of what is taken in is lost
        self.lose_until = 0.0  #: until when some of what is handed over never arrives
        self.lost = 0  #: messages that it took in, and handed to nobody
        self._messages: list[Message] = []
        self._waiting: list[Thread] = []

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Message) -> None:
        kernel = self.kernel
        self.took.add(message.job_id)
        if kernel.now < self.forget_until and kernel.random.random() < LOST_SHARE:
            self.lost += 1
            return
        copies = 2 if kernel.now < self.double_until else 1
        for copy in range(copies):
            late = kernel.random.random() * 2.0 if copy or kernel.now < self.delay_until else 0.0
            if late:
                kernel.call(kernel.now + late, lambda: self._arrive(message))
            else:
                self._arrive(message)

    def take(self, process: Process) -> Message:
        """Wait for a message."""
        kernel = self.kernel
        while True:
            while not self._messages or not process.reaches("broker"):
                assert kernel.current is not None
                self._waiting.append(kernel.current)
                kernel.pause(1.0)
                if kernel.current in self._waiting:
                    self._waiting.remove(kernel.current)
            # Queues keep their order, but several consumers and redeliveries do not.
            message = self._messages.pop(0 if kernel.random.random() < 0.8 else -1)
            if not self._gets_lost(process):
                return message
            kernel.note("delivery.lost", job=message.job_id)

    def _gets_lost(self, process: Process) -> bool:
        """Tell whether what was handed over never arrives: the connection broke before, as Redis' may."""
        if process.deaf:
            process.deaf = False
            return True
        return self.kernel.now < self.lose_until and self.kernel.random.random() < LOST_SHARE

    def lose(self, share: float) -> None:
        """Lose about this share of what waits."""
        kept = [each for each in self._messages if self.kernel.random.random() >= share]
        self.lost += len(self._messages) - len(kept)
        self._messages = kept

    def double(self) -> None:
        self._messages += self._messages

    def _arrive(self, message: Message) -> None:
        self._messages.append(message)
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            self.kernel.wake(thread, self.kernel.now)


class SimulatedPublisher:
    """`cronq.delivery.publisher.Publisher` for one process."""

    batch = 100
    outages: tuple[type[BaseException], ...] = (ConnectionError,)

    def __init__(self, broker: Broker, process: Process) -> None:
        self._broker, self._process = broker, process

    def queue_of(self, _task: str, _queue: str | None) -> str:
        return QUEUE

    def routes(self) -> dict[str, str]:
        return {}

    def render_rest(self, batch: Sequence[DueJob]) -> list[DueJob]:
        for due in batch:
            due.message = Message(due.id, _facts(due, None if due.fire_time is None else iso(due.fire_time)))
        return list(batch)

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        self.render_rest([due for due in batch if due.message is None])
        kernel, process = self._broker.kernel, self._process
        kernel.linger(0.001)
        process.step()
        self._reach()
        for due in batch:
            self._broker.put(due.message)
            if kernel.random.random() < 0.01:
                process.step()
        process.step()
        kernel.linger(0.001)
        if process.deaf:
            process.deaf = False
            raise PublishFailed(ConnectionError("no confirmation"), "simulated")
        self._reach()
        return [due.id for due in batch]

    def depth(self, _queue: str) -> int:
        self._process.step()
        if not self._process.reaches("broker"):
            raise ConnectionError("no answer")
        return len(self._broker)

    def take_oversized(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass

    def _reach(self) -> None:
        if not self._process.reaches("broker"):
            raise PublishFailed(ConnectionError("no answer"), "simulated")
