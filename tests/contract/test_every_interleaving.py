"""Whatever order workers, rescuers and operators act in, only the table's transitions happen."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cronq.errors import JobRefused
from cronq.job import ENDS, TRANSITIONS, Outcome, State
from cronq.schedule import Overlap, Reason, schedule_id
from cronq.settings import Settings
from cronq.store.agenda import mark_published, mark_skipped
from cronq.store.attempts import bury
from cronq.store.dead import DeadFilter, discard_dead_letters, retry_dead_letters
from cronq.store.jobs import request_cancel, request_cancel_of_schedules, retry_dead
from cronq.store.leases import renew
from cronq.upkeep.job_rescuer import JobRescuer

from .rows import LEASE_S, Rows

JOBS = 2
WHICH = st.integers(0, JOBS - 1)
AFTER = [
    (State.RETRYING, Outcome.FAILED),
    (State.RETRYING, Outcome.HANDED_BACK),
    (State.COMPLETED, Outcome.COMPLETED),
    (State.FAILED, Outcome.FAILED),
    (State.TIMED_OUT, Outcome.TIMED_OUT),
    (State.CANCELLED, Outcome.CANCELLED),
]


def machine_on(rows: Rows) -> type[RuleBasedStateMachine]:  # noqa: C901 - one method per thing that can happen
    """Return a machine whose jobs all belong to one schedule without overlap."""
    # However slow the machine is, the rescuer takes no pause between two steps for an outage.
    rescuer = JobRescuer(rows.database, Settings(max_crashes=4), monotonic=lambda: 1.0)
    runs = iter(range(10**9))

    class Interleaving(RuleBasedStateMachine):
        @initialize()
        def plan(self) -> None:
            self.schedule = f"s{next(runs)}"
            self.jobs = [rows.job(schedule=self.schedule, overlap=Overlap.SKIP) for _ in range(JOBS)]
            self.states = dict.fromkeys(self.jobs, State.SCHEDULED)
            self.outcomes: dict[str, int] = dict.fromkeys(self.jobs, 0)
            self.tokens: list[tuple[str, str]] = []  # (job, token), every lease that was ever given
            self.live: dict[str, str] = {}  # job → the token of its lease now

        def other_running(self, job_id: str) -> bool:
            return any(state is State.RUNNING for each, state in self.states.items() if each != job_id)

        def zombies(self) -> list[tuple[str, str]]:
            """Leases that were lost, of jobs that run again."""
            return [each for each in self.tokens if self.live.get(each[0], each[1]) != each[1]]

        @rule(which=WHICH)
        def publish(self, which: int) -> None:
            mark_published(rows.database, rows.sent(self.jobs[which]))

        @rule(which=WHICH)
        def claim(self, which: int) -> None:
            job_id = self.jobs[which]
            token = f"{job_id[:8]}-{len(self.tokens)}"
            claimable = {State.SCHEDULED, State.PENDING, State.RETRYING}
            expected = self.states[job_id] in claimable and not self.other_running(job_id)
            got = rows.claim(job_id, token)
            assert (got is not None) == expected
            if got is not None:
                self.live[job_id] = token
                self.tokens.append((job_id, token))

        @precondition(lambda self: self.tokens)
        @rule(data=st.data())
        def claim_again(self, data: Any) -> None:
            # The answer to a claim got lost, and the worker asks once more with the same token.
            job_id, token = data.draw(st.sampled_from(self.tokens))
            got = rows.claim(job_id, token)
            assert (got is not None) == (self.live.get(job_id) == token)

        @precondition(lambda self: self.tokens)
        @rule(data=st.data(), after=st.sampled_from(AFTER))
        def settle(self, data: Any, after: tuple[State, Outcome]) -> None:
            job_id, token = data.draw(st.sampled_from(self.tokens))
            alive = self.live.get(job_id) == token
            state, outcome = after
            dead = state in (State.FAILED, State.TIMED_OUT)
            assert rows.settle(job_id, token, state=state, outcome=outcome, dead=dead) == alive
            if alive:
                del self.live[job_id]
                self.outcomes[job_id] += 1

        @precondition(lambda self: self.zombies())
        @rule(data=st.data(), after=st.sampled_from(AFTER))
        def settle_late(self, data: Any, after: tuple[State, Outcome]) -> None:
            # Another worker runs the job meanwhile: the narrowest place for a zombie to get through.
            job_id, token = data.draw(st.sampled_from(self.zombies()))
            assert not rows.settle(job_id, token, state=after[0], outcome=after[1])
            assert renew(rows.database, [token], lease_s=LEASE_S) == {}

        @precondition(lambda self: self.tokens)
        @rule(data=st.data())
        def renew(self, data: Any) -> None:
            some = data.draw(st.lists(st.sampled_from(self.tokens), min_size=1, unique=True))
            kept = renew(rows.database, [token for _job, token in some], lease_s=LEASE_S)
            assert set(kept) == {token for job_id, token in some if self.live.get(job_id) == token}

        @rule(which=WHICH)
        def expire(self, which: int) -> None:
            rows.expire(self.jobs[which])

        @rule()
        def rescue(self) -> None:
            silent = {
                job_id for job_id in self.live if rows.row(job_id)["lease_until"] < rows.now()
            }  # fmt: skip
            rescuer.run(None)  # type: ignore[arg-type]
            for job_id in silent:
                del self.live[job_id]
                self.outcomes[job_id] += 1

        @rule(which=WHICH)
        def lose(self, which: int) -> None:
            rows.expire(self.jobs[which])
            self.rescue()

        @rule(which=WHICH, how=st.sampled_from(["cancel", "cancel all", "skip"]))
        def stop(self, which: int, how: str) -> None:
            if how == "cancel":
                request_cancel(rows.database, self.jobs[which])
            elif how == "cancel all":
                request_cancel_of_schedules(rows.database, [schedule_id(self.schedule)], at_once=False)
            else:
                mark_skipped(rows.database, [self.jobs[which]], Reason.OVERLAP)

        @rule(which=WHICH)
        def send_back(self, which: int) -> None:
            job_id = self.jobs[which]
            dead = self.states[job_id] in (State.FAILED, State.TIMED_OUT)
            try:
                retry_dead(rows.database, job_id)
            except JobRefused:
                assert not dead
            else:
                assert dead

        @rule(which=WHICH)
        def bury(self, which: int) -> None:
            job_id = self.jobs[which]
            waits = self.states[job_id] in (State.SCHEDULED, State.PENDING, State.RETRYING)
            assert bury(rows.database, job_id, kind="unknown_task", error="nobody knows it") == waits
            self.outcomes[job_id] += waits

        @rule(how=st.sampled_from([retry_dead_letters, discard_dead_letters]))
        def see_to_the_dead(self, how: Any) -> None:
            dead = {job_id for job_id in self.jobs if rows.row(job_id)["dead_at"] is not None}
            assert set(how(rows.database, DeadFilter(ids=self.jobs))) == dead
            for job_id in self.jobs:
                assert rows.row(job_id)["dead_at"] is None

        @invariant()
        def only_what_the_table_allows(self) -> None:
            for job_id, before in self.states.items():
                row = rows.row(job_id)
                now = State(row["state"])
                assert now is before or now in TRANSITIONS.get(before, set()), f"{before} -> {now}"
                self.states[job_id] = now
                # At most one live lease, and it is the one that was given last.
                assert (now is State.RUNNING) == (job_id in self.live)
                if now is State.RUNNING:
                    assert row["lease_token"] == self.live[job_id]
                assert (row["finished_at"] is not None) == (now in ENDS), now
                assert len(rows.attempts(job_id)) == self.outcomes[job_id]
            assert len(self.live) <= 1

    return Interleaving


def test_only_the_tables_transitions_happen_and_one_lease_lives(rows: Rows) -> None:
    examples = settings(
        max_examples=40,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine_on(rows), settings=examples)
