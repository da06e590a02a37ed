"""Old garbage is looked for when nothing is due, and in the end whatever is due."""

import gc

import pytest

from cronq.beat import garbage
from cronq.beat.garbage import AT_LAST_S, EVERY_S, Garbage


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock, done = Clock(), []

    def collect() -> None:
        done.append(clock.now)
        clock.now += 0.3

    monkeypatch.setattr(garbage, "time", clock)
    monkeypatch.setattr(gc, "collect", collect)
    return done


def later(seconds: float) -> None:
    garbage.time.now += seconds


def test_it_is_looked_for_once_a_minute_when_no_job_waits(looks: list[float]) -> None:
    each = Garbage()
    for _ in range(3 * int(EVERY_S)):
        each.look(None)
        later(1)
    assert len(looks) == 2


def test_it_is_not_looked_for_while_a_job_is_due_too_soon(looks: list[float]) -> None:
    each = Garbage()
    later(EVERY_S)
    each.look(0.2)
    assert looks == []
    each.look(0.6)
    assert len(looks) == 1
    later(EVERY_S)
    each.look(0.4)  # it took 0.3 s the last time
    assert len(looks) == 2


def test_in_the_end_it_is_looked_for_whatever_is_due(looks: list[float]) -> None:
    each = Garbage()
    later(AT_LAST_S)
    each.look(0.01)
    assert len(looks) == 1
