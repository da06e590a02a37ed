"""Job ids are the dedup ids, and the transition table is the only way from state to state."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cronq.job import ACTIVE, ENDS, TRANSITIONS, State, demanded_job_id, scheduled_job_id, uuid7
from cronq.schedule import schedule_id

SCHEDULE = schedule_id("nightly")
FIRE = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_one_fire_time_has_one_id_in_every_process() -> None:
    program = (
        "from datetime import UTC, datetime; from cronq.job import scheduled_job_id;"
        "from cronq.schedule import schedule_id;"
        "print(scheduled_job_id(schedule_id('nightly'), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)))"
    )
    other = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert other.stdout.strip() == scheduled_job_id(SCHEDULE, FIRE)


def test_the_id_never_changes_between_releases() -> None:
    # A rolling upgrade runs two releases side by side: both must name the same job.
    assert SCHEDULE == "5f541a4c-484c-502a-97b4-6bdf8d1167ae"
    assert scheduled_job_id(SCHEDULE, FIRE) == "9ca4bc0e-12c4-5937-9271-f3ccaabe5871"


def test_the_same_instant_in_another_zone_is_the_same_job() -> None:
    paris = FIRE.astimezone(timezone(timedelta(hours=2)))
    assert scheduled_job_id(SCHEDULE, paris) == scheduled_job_id(SCHEDULE, FIRE)


@pytest.mark.parametrize(
    ("schedule", "fire_time", "item"),
    [
        (schedule_id("hourly"), FIRE, ""),
        (SCHEDULE, FIRE + timedelta(microseconds=1), ""),
        (SCHEDULE, FIRE + timedelta(hours=1), ""),
        (SCHEDULE, FIRE, "eu"),
    ],
)
def test_another_schedule_instant_or_item_is_another_job(
    schedule: str, fire_time: datetime, item: str
) -> None:
    assert scheduled_job_id(schedule, fire_time, item) != scheduled_job_id(SCHEDULE, FIRE)


def test_one_dedup_key_is_one_job_and_no_key_is_a_new_job_each_time() -> None:
    assert demanded_job_id("invoice-7") == demanded_job_id("invoice-7") != demanded_job_id("invoice-8")
    assert demanded_job_id(None) != demanded_job_id(None)


def test_a_dedup_key_cannot_name_the_job_of_a_schedule() -> None:
    moment = FIRE.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert demanded_job_id(f"{SCHEDULE} {moment} ") != scheduled_job_id(SCHEDULE, FIRE)


def test_uuid7_is_version_7_and_sorts_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [1_700_000_000_000_000_000 + step * 1_000_000 for step in range(5)]
    times = iter(instants)
    monkeypatch.setattr("cronq.job.time.time_ns", lambda: next(times))
    made = [uuid7() for _ in instants]
    assert [each.version for each in made] == [7] * 5
    assert {each.variant for each in made} == {"specified in RFC 4122"}
    assert made == sorted(made, key=str)
    assert made[0].int >> 80 == 1_700_000_000_000


def test_every_state_is_reached_and_every_way_leads_to_an_end() -> None:
    reached = {State.SCHEDULED}.union(*TRANSITIONS.values())
    assert reached == set(State)
    for state in set(State) - ENDS:
        seen, todo = set(), {state}
        while todo:
            seen |= todo
            todo = set().union(*(TRANSITIONS.get(each, set()) for each in todo)) - seen
        assert seen & ENDS, f"{state} never ends"


def test_ends_never_change_but_for_a_dead_letter_that_is_sent_back() -> None:
    after_ends = {(end, after) for end in ENDS for after in TRANSITIONS.get(end, set())}
    assert after_ends == {(State.FAILED, State.SCHEDULED), (State.TIMED_OUT, State.SCHEDULED)}


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.TIMED_OUT])
def test_nothing_that_never_ran_has_an_outcome(state: State) -> None:
    assert state in TRANSITIONS[State.RUNNING]
    if state is not State.FAILED:  # a task that no worker knows
        assert state not in TRANSITIONS[State.SCHEDULED] | TRANSITIONS[State.PENDING]


def test_what_is_going_on_is_neither_over_nor_only_planned() -> None:
    assert set(State) - ENDS - {State.SCHEDULED} == ACTIVE
