"""What the installation under test is to do, and when: by an arithmetic that is not cronq's.

Instants are whole milliseconds since the epoch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

LONG_S = 6.0


@dataclass(frozen=True)
class Planned:
    """One schedule of the workload. Exactly one of `every_ms` and `cron` is set."""

    name: str
    every_ms: int | None = None
    cron: str | None = None  #: five fields, or six with the seconds first
    tz: str = "UTC"
    body_s: float = 0.0  #: how long the body takes
    overlap: str = "allow"
    catch_up: str = "all"
    fails_first: bool = False  #: the first attempt asks for another one

    @property
    def queues(self) -> bool:
        """Whether a fire time may have to wait for the one before it."""
        return self.overlap == "queue"

    def fire_times(self, start_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the fire times in [start_ms, end_ms)."""
        if self.every_ms is not None:
            first = -(-start_ms // self.every_ms) * self.every_ms
            yield from range(first, end_ms, self.every_ms)
            return
        assert self.cron is not None
        before = datetime.fromtimestamp(start_ms / 1000 - 0.001, ZoneInfo(self.tz))
        for moment in _cron(self.cron, before):
            at = round(moment.timestamp() * 1000)
            if at >= end_ms:
                return
            if at >= start_ms:
                yield at

    def entry(self, start_ms: int) -> dict[str, Any]:
        """Return the entry of Celery's `beat_schedule`."""
        from cronq import cron, every  # noqa: PLC0415 - the checker must not need cronq

        policy = {
            "overlap": self.overlap,
            "catch_up": self.catch_up,
            "start": datetime.fromtimestamp(start_ms / 1000, UTC),
        }
        if self.every_ms is not None:
            when = every(f"{self.every_ms}ms", **policy)
        else:
            assert self.cron is not None
            when = cron(self.cron, tz=self.tz, **policy)
        return {"task": "bench.work", "schedule": when, "args": (self.body_s, self.fails_first)}


def _cron(text: str, before: datetime) -> Iterator[datetime]:
    if len(text.split()) == 6:
        return croniter(text, before, second_at_beginning=True).all_next(datetime)
    return CronSim(text, before)


def workload(ticks: int) -> list[Planned]:
    """Return the schedules: a fast pulse, `ticks` each second, and one of every kind of policy."""
    return [
        Planned("pulse", every_ms=100),
        *(Planned(f"tick-{n:02}", every_ms=1000) for n in range(ticks)),
        Planned("steady", every_ms=1000, body_s=0.3, overlap="skip"),
        Planned("slow", every_ms=2000, body_s=3.0, overlap="skip", catch_up="latest"),
        Planned("long", every_ms=5000, body_s=LONG_S),
        Planned("in-turn", every_ms=2000, body_s=0.3, overlap="queue"),
        Planned("flaky", every_ms=2000, fails_first=True),
        Planned("cron-seconds", cron="*/7 * * * * *"),
        Planned("cron-minute", cron="* * * * *", tz="Europe/Paris"),
    ]
