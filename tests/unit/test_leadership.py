"""Trust ends early, never late: the leader's lock and term, step by step, on clocks of the test's own."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from cronq.coordination import leadership as module
from cronq.coordination.leadership import WEDGED_AFTER_S, Leadership
from cronq.coordination.lock import Renewal
from cronq.store.terms import Term

LOCK_S = 2.0
AWAY = redis.ConnectionError("refused")


@dataclass
class World:
    """Redis' lock, SQL's term and the monotonic clock, all in the hands of the test."""

    now: float = 1000.0
    holder: str | None = None
    newest: Term | None = None
    redis_away: bool = False
    sql_away: bool = False
    answer_takes: float = 0.0
    released: int = 0
    told: int = 0
    changes: int = 0

    def monotonic(self) -> float:
        return self.now

    def answer(self) -> None:
        self.now += self.answer_takes
        if self.redis_away:
            raise AWAY

    def begin_term(self, _database: object, *, shard: int, holder: str, host: str, pid: int) -> Term:
        if self.sql_away:
            raise OSError("no database")
        number = 1 if self.newest is None else self.newest.term + 1
        since = datetime(2026, 1, 1, tzinfo=UTC)
        self.newest = Term(shard=shard, term=number, holder=holder, host=host, pid=pid, since=since)
        return self.newest

    def read_term(self, _database: object, _shard: int) -> Term | None:
        if self.sql_away:
            raise OSError("no database")
        return self.newest

    def lead_elsewhere(self) -> None:
        """Another beat took the lock and started a term."""
        self.holder = "other"
        self.begin_term(None, shard=0, holder="other", host="h2", pid=2)


@dataclass
class FakeLock:
    world: World
    holder: str = "me"
    on_release: Callable[[], None] = field(default=lambda: None)

    def take(self) -> bool:
        self.world.answer()
        if self.world.holder is None:
            self.world.holder = self.holder
            return True
        return False

    def renew(self) -> Renewal:
        self.world.answer()
        if self.world.holder is None:
            self.world.holder = self.holder
            return Renewal.REGAINED
        return Renewal.HELD if self.world.holder == self.holder else Renewal.LOST

    def release(self) -> None:
        if self.world.redis_away:
            raise AWAY
        self.world.released += 1
        if self.world.holder == self.holder:
            self.world.holder = None
        self.on_release()

    def tell_free(self) -> None:
        self.world.told += 1


class FakeTime:
    def __init__(self, world: World) -> None:
        self.monotonic = world.monotonic


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(module, "time", FakeTime(world))
    monkeypatch.setattr(module, "begin_term", world.begin_term)
    monkeypatch.setattr(module, "read_term", world.read_term)
    return world


@pytest.fixture
def beat(world: World) -> Leadership:
    return make(world)


def make(world: World, **changes: Any) -> Leadership:
    def changed() -> None:
        world.changes += 1

    parts: dict[str, Any] = {
        "lock": FakeLock(world),
        "database": None,
        "shard": 0,
        "host": "h",
        "pid": 1,
        "lock_s": LOCK_S,
        "standby_poll_s": 0.01,
        "on_change": changed,
    }
    return Leadership(**{**parts, **changes})


@pytest.fixture
def leader(world: World, beat: Leadership) -> Leadership:
    beat._step()
    assert beat.current() is not None
    return beat


def term_of(beat: Leadership) -> int | None:
    current = beat.current()
    return None if current is None else current.term


def test_whoever_takes_the_lock_starts_the_next_term_and_is_told(world: World, beat: Leadership) -> None:
    assert beat.current() is None
    world.lead_elsewhere()
    world.holder = None
    beat._step()
    assert term_of(beat) == 2
    assert world.changes == 1


def test_a_standby_loses_to_the_lock(world: World, beat: Leadership) -> None:
    world.holder = "other"
    beat._step()
    assert beat.current() is None
    assert world.newest is None


def test_trust_ends_before_the_lock_can_expire(world: World, leader: Leadership) -> None:
    world.now += LOCK_S - 0.001
    assert leader.current() is not None
    world.now += 0.001
    assert leader.current() is None


def test_a_renewal_prolongs_trust_from_the_moment_it_was_sent(world: World, leader: Leadership) -> None:
    world.now += 1.0
    sent = world.now
    world.answer_takes = 0.4
    leader._step()
    world.now = sent + LOCK_S - 0.001
    assert leader.current() is not None
    world.now = sent + LOCK_S
    assert leader.current() is None


def test_a_late_success_does_not_extend_trust(world: World, leader: Leadership) -> None:
    world.answer_takes = LOCK_S + 0.5
    leader._step()
    assert leader.current() is None


def test_a_lock_taken_late_is_not_trusted(world: World, beat: Leadership) -> None:
    world.answer_takes = LOCK_S
    beat._step()
    assert beat.current() is None


def test_a_term_that_starts_late_is_not_trusted(
    world: World, beat: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args: Any, **facts: Any) -> Term:
        world.now += LOCK_S
        return world.begin_term(*args, **facts)

    monkeypatch.setattr(module, "begin_term", slow)
    beat._step()
    assert beat.current() is None


def test_a_leader_steps_down_at_once_when_the_lock_is_anothers(world: World, leader: Leadership) -> None:
    world.holder = "other"
    leader._step()
    assert leader.current() is None
    assert world.holder == "other"
    assert world.changes == 2


def test_an_emptied_redis_does_not_change_the_leader(world: World, leader: Leadership) -> None:
    world.holder = None
    world.now += 1
    leader._step()
    assert term_of(leader) == 1
    assert world.holder == "me"
    world.now += LOCK_S - 0.1
    assert term_of(leader) == 1


def test_a_regained_lock_loses_to_a_newer_term(world: World, leader: Leadership) -> None:
    world.lead_elsewhere()
    world.holder = None
    leader._step()
    assert leader.current() is None


def test_a_regained_lock_without_sql_is_trusted_no_longer_than_before(
    world: World, leader: Leadership
) -> None:
    world.holder, world.sql_away = None, True
    world.now += 1.5
    leader._step()
    assert term_of(leader) == 1
    world.now += 0.5
    assert leader.current() is None


def test_while_redis_is_away_sql_confirms_the_leader(world: World, leader: Leadership) -> None:
    world.redis_away = True
    for _ in range(20):
        world.now += 1.0
        leader._step()
        assert term_of(leader) == 1


def test_while_redis_is_away_a_newer_term_wins(world: World, leader: Leadership) -> None:
    world.redis_away = True
    world.lead_elsewhere()
    leader._step()
    assert leader.current() is None


def test_a_slow_sql_does_not_extend_trust_while_redis_is_away(
    world: World, leader: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_database: object, _shard: int) -> Term | None:
        world.now += LOCK_S + 1
        return world.newest

    world.redis_away = True
    monkeypatch.setattr(module, "read_term", slow)
    leader._step()
    assert leader.current() is None


def test_with_neither_redis_nor_sql_trust_runs_out_and_comes_back_with_them(
    world: World, leader: Leadership
) -> None:
    world.redis_away = world.sql_away = True
    world.now += 1
    leader._step()
    assert term_of(leader) == 1  # the last renewal still counts
    world.now += 1.5
    leader._step()
    assert leader.current() is None
    world.redis_away = world.sql_away = False
    world.holder = None  # it expired
    leader._step()
    assert term_of(leader) == 2


def test_without_redis_nobody_becomes_leader(world: World, beat: Leadership) -> None:
    world.redis_away = True
    beat._step()
    assert beat.current() is None
    assert world.newest is None


def test_without_sql_the_lock_is_given_back(world: World, beat: Leadership) -> None:
    world.sql_away = True
    beat._step()
    assert beat.current() is None
    assert world.holder is None


def test_a_wedged_main_loop_gives_the_lead_to_another_beat(world: World, leader: Leadership) -> None:
    world.now += WEDGED_AFTER_S + 1
    leader._step()
    assert leader.current() is None
    assert world.holder is None
    leader._step()
    assert world.holder is None, "a wedged beat must not compete again"
    leader.moved()
    leader._step()
    assert term_of(leader) == 2


def test_a_refused_write_ends_that_term_and_no_later_one(world: World, leader: Leadership) -> None:
    first = leader.current()
    assert first is not None
    leader.step_down(first)
    assert leader.current() is None
    world.holder = None
    leader._step()
    leader.step_down(first)
    assert term_of(leader) == 2


@pytest.fixture
def started(world: World) -> Iterator[tuple[Leadership, threading.Event]]:
    leads, released = threading.Event(), threading.Event()
    beat = make(world, lock=FakeLock(world, on_release=released.set), on_change=leads.set)
    beat.start()
    assert leads.wait(10)
    yield beat, released
    beat.stop()


def test_stopping_releases_the_lock(world: World, started: tuple[Leadership, threading.Event]) -> None:
    beat, released = started
    beat.stop()
    assert released.wait(10)
    assert world.holder is None
    assert beat.current() is None
    beat.stop()
    assert (world.released, world.told) == (1, 1)


def test_a_standby_told_that_the_lock_is_free_takes_it_at_once(world: World) -> None:
    leads, looked = threading.Event(), threading.Event()
    beat = make(world, standby_poll_s=3600, on_change=leads.set, on_beat=lambda _leads: looked.set())
    world.holder = "other"
    beat.start()
    assert looked.wait(10)
    world.holder = None
    beat.look()
    assert leads.wait(10)
    beat.stop()


def test_a_beat_that_gets_no_term_tells_nobody_that_the_lock_is_free(world: World, beat: Leadership) -> None:
    world.sql_away = True
    beat._step()
    assert (world.released, world.told) == (1, 0), "it would wake itself, over and over"


def test_stopping_without_redis_does_not_hang(
    world: World, started: tuple[Leadership, threading.Event]
) -> None:
    beat, _released = started
    world.redis_away = True
    beat.stop()
    beat._thread.join(10)
    assert not beat._thread.is_alive()


def test_stopping_what_was_never_started_does_nothing(world: World, beat: Leadership) -> None:
    beat.stop()
    assert world.released == 0


def test_an_unforeseen_error_ends_trust_but_not_the_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads = threading.Event()
    lock = FakeLock(world)
    beat = make(world, lock=lock, on_change=leads.set, lock_s=0.03)
    monkeypatch.setattr(lock, "renew", lambda: 1 / 0)
    beat.start()
    assert leads.wait(10)
    leads.clear()
    world.holder = None
    # It fell back to standing by, and leads again under a new term.
    assert leads.wait(10)
    beat.stop()
    assert world.newest is not None
    assert world.newest.term >= 2
