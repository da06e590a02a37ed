"""cronq with a guarantee switched off. The simulation is worth something only if it notices each of them.

Each mutant changes cronq itself, in this process: a statement's text, a function, a constraint.
"""

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from sqlalchemy import text

import cronq.beat.planning
import cronq.clock
import cronq.store.scheduled
import cronq.timing.data
import cronq.upkeep.job_rescuer
from cronq.beat.overlap import OverlapGate, Verdict
from cronq.beat.planning import Planning
from cronq.beat.publishing import Publishing
from cronq.clock import Sighting
from cronq.coordination.leadership import Leadership
from cronq.store import agenda
from cronq.store.database import Database
from cronq.store.terms import hold_term
from cronq.timing import Cron
from cronq.upkeep.job_rescuer import JobRescuer
from cronq.upkeep.publish_reconciler import PublishReconciler

from . import fake_redis
from .fake_redis import SCRIPTS, RedisServer
from .patching import cronq_modules, stage
from .sql import SimulatedDatabase

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Mutant:
    """One thing that is left out."""

    apply: Callable[[Patch], None]
    without: frozenset[str] = frozenset()  #: constraints and indexes that the tables lack

    @property
    def name(self) -> str:
        return self.apply.__name__


def no_term_check(patch: Patch) -> None:
    """A leader that was overtaken goes on planning."""
    for module in cronq_modules():
        if getattr(module, "hold_term", None) is hold_term:
            patch.setattr(module, "hold_term", lambda _connection, _term: None)


def no_unique_key(patch: Patch) -> None:
    """Nothing tells two jobs of a fire time apart; the cursor moves after them, so a crash doubles."""
    patch.setattr(cronq.store.scheduled, "scheduled_job_id", lambda *_fire: str(uuid.uuid4()))
    _apart(patch, later="advance")


def cursor_before_jobs(patch: Patch) -> None:
    """The cursor moves in a transaction of its own, before the jobs are stored."""
    _apart(patch, later="insert_jobs")


def no_lease_check(patch: Patch) -> None:
    """A worker settles the job that it ran, whatever became of its lease meanwhile."""
    _rewrite(patch, r"AND lease_token = CAST\(:token AS varchar\) AND state = 'RUNNING'", "")


def claim_from_any_state(patch: Patch) -> None:
    _rewrite(patch, r"AND \(\s+state IN \('SCHEDULED'.*?\n\s+\)", "")


def claim_before_its_time(patch: Patch) -> None:
    _rewrite(patch, r"AND due_at <= sim_now\(0.5\)", "")


def no_gate_and_no_index(patch: Patch) -> None:
    """Neither the leader's gate nor the index of running jobs keeps two jobs of one schedule apart."""
    patch.setattr(OverlapGate, "doubtful", lambda _self, _batch: [])
    patch.setattr(OverlapGate, "decide", lambda _self, batch, _buffers: Verdict(go=list(batch)))


def rescue_of_the_living(patch: Patch) -> None:
    """The rescuer takes jobs whose lease is live."""

    def running(database: Database, *, limit: int) -> list[Any]:
        query = text("SELECT * FROM cronq_job WHERE state = 'RUNNING' LIMIT :limit")
        with database.autocommit() as connection:
            return list(connection.execute(query, {"limit": limit}))

    settle = cronq.upkeep.job_rescuer.settle
    patch.setattr(cronq.upkeep.job_rescuer, "silent_jobs", running)
    patch.setattr(
        cronq.upkeep.job_rescuer, "settle", lambda database, settlement, **_only: settle(database, settlement)
    )


def no_rescuer(patch: Patch) -> None:
    patch.setattr(JobRescuer, "run", lambda _self, _term: None)


def no_reconciler(patch: Patch) -> None:
    patch.setattr(PublishReconciler, "run", lambda _self, _term: None)


def mark_before_publish(patch: Patch) -> None:
    """A job counts as published before the broker has its message."""
    send = Publishing._send

    def marked_first(self: Publishing, batch: list[Any]) -> bool:
        agenda.mark_published(self.database, batch)
        return send(self, batch)

    patch.setattr(Publishing, "_send", marked_first)


def trust_from_the_answer(patch: Patch) -> None:
    """The lock is trusted from the moment its answer arrived, not from when it was asked for."""
    step = Leadership._step

    def trusting(self: Leadership) -> None:
        before = self._held
        step(self)
        if self._held is not None and self._held is not before:
            self._held = (self._held[0], stage.kernel.process().monotonic() + self._lock_s)

    patch.setattr(Leadership, "_step", trusting)


def lock_for_everybody(patch: Patch) -> None:
    """The lock is taken whoever holds it."""

    def take(server: RedisServer, key: str, holder: str, ttl_ms: int) -> int:
        server.delete(key)
        return fake_redis._take(server, key, holder, ttl_ms)

    _replace_script(patch, fake_redis._take, take)


def lock_for_as_long_as_redis_says(patch: Patch) -> None:
    """A dead leader's lock lasts as long as a clock that was set back makes it."""

    def take(server: RedisServer, key: str, holder: str, ttl_ms: int) -> int:
        return int(server.set(key, holder, lives_s=ttl_ms / 1000, only_new=True))

    _replace_script(patch, fake_redis._take, take)


def redis_alone_tells_the_time(patch: Patch) -> None:
    """A clock that was outvoted is followed as soon as the other store does not answer."""
    choose = cronq.clock._choose

    def choose_any(seen: Sighting, carried: float | None, **_rules: Any) -> tuple[float | None, str | None]:
        as_sql = Sighting(seen.redis, None, seen.within_s) if seen.sql is None else seen
        return choose(as_sql, carried, sql_counts=True)

    patch.setattr(cronq.clock, "_choose", choose_any)


def no_pause_for_a_broker_that_is_away(patch: Patch) -> None:
    """The beat goes round and round until the broker is tried again."""

    def seconds_to_due(self: Publishing) -> float | None:
        due = self.agenda.next_due()
        return None if due is None else max(0.0, (due - self.clock.now()).total_seconds())

    patch.setattr(Publishing, "seconds_to_due", seconds_to_due)


def blind_to_daylight_saving(patch: Patch) -> None:
    """A time zone has one offset all the year."""
    read = cronq.timing.data.timing_from

    def in_winter(data: Any) -> Any:
        timing = read(data)
        return timing if not isinstance(timing, Cron) else replace(timing, tz="Etc/GMT-1")

    for module in cronq_modules():
        if getattr(module, "timing_from", None) is read:
            patch.setattr(module, "timing_from", in_winter)


MUTANTS: Final = (
    Mutant(no_term_check),
    Mutant(no_unique_key, frozenset({"cronq_job_one_per_fire_time"})),
    Mutant(cursor_before_jobs),
    Mutant(no_lease_check),
    Mutant(claim_from_any_state),
    Mutant(claim_before_its_time),
    Mutant(no_gate_and_no_index, frozenset({"cronq_job_one_running_per_schedule"})),
    Mutant(rescue_of_the_living),
    Mutant(no_rescuer),
    Mutant(no_reconciler),
    Mutant(mark_before_publish),
    Mutant(trust_from_the_answer),
    Mutant(lock_for_everybody),
    Mutant(lock_for_as_long_as_redis_says),
    Mutant(redis_alone_tells_the_time),
    Mutant(no_pause_for_a_broker_that_is_away),
    Mutant(blind_to_daylight_saving),
)


def _apart(patch: Patch, *, later: str) -> None:
    """Let planning do one of its two writes in a second transaction."""
    plan_batch, write, store = Planning._plan_batch, getattr(agenda, later), _Store(later)

    def in_two(self: Planning, *when: Any) -> Any:
        put_off = store.put_off[stage.kernel.process().name] = []
        answer = plan_batch(self, *when)
        for arguments in put_off:
            with self.database.begin() as connection:
                write(*[connection if hasattr(each, "execute") else each for each in arguments])
        return answer

    patch.setattr(cronq.beat.planning, "store", store)
    patch.setattr(Planning, "_plan_batch", in_two)


class _Store:
    """`cronq.store.agenda` with one function put off."""

    def __init__(self, later: str) -> None:
        self._later = later
        self.put_off: dict[str, list[tuple[Any, ...]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name != self._later:
            return getattr(agenda, name)
        return lambda *arguments: self.put_off[stage.kernel.process().name].append(arguments)


def _rewrite(patch: Patch, old: str, new: str) -> None:
    """Change the text of the statements that go straight to the driver."""
    run = SimulatedDatabase._run

    def changed(self: SimulatedDatabase, statement: str, values: Any) -> Any:
        return run(self, re.sub(old, new, statement, flags=re.DOTALL), values)

    patch.setattr(SimulatedDatabase, "_run", changed)


def _replace_script(patch: Patch, real: Callable[..., int], mutant: Callable[..., int]) -> None:
    for source, script in SCRIPTS.items():
        if script is real:
            patch.setitem(SCRIPTS, source, mutant)
