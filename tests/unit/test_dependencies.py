"""What may come after what, and when one of several is done."""

import itertools

import pytest
from celery import Celery

from cronq import cron, delay
from cronq.beat.catalog import examine
from cronq.beat.dependencies import link
from cronq.schedule import After, Join, Schedule
from cronq.store.definitions import from_data, to_data
from cronq.store.dependencies import Upstream
from cronq.timing import Cron
from cronq.upkeep.dependency_resolver import decide


def schedule(name, *after, kind=None):
    timing = {"kind": kind} if kind else Cron("0 2 * * *").to_data()
    return Schedule(name=name, task="t", timing=timing, after=After(after) if after else None)


def refused(*schedules):
    return dict(link(schedules)[1])


def test_those_that_others_wait_for_are_marked():
    found, wrong = link([schedule("a"), schedule("b", "a"), schedule("c", "b")])
    assert {each.name: each.followed for each in found} == {"a": True, "b": True, "c": False}
    assert wrong == []


def test_a_circle_is_refused_with_its_way_and_the_others_stay():
    wrong = refused(schedule("a", "c"), schedule("b", "a"), schedule("c", "b"), schedule("fine"))
    assert set(wrong) == {"a", "b", "c"}
    assert "a → b → c → a" in wrong["a"]


def test_a_schedule_that_comes_after_itself_is_refused():
    assert "a → a" in refused(schedule("a", "a"))["a"]


def test_what_comes_after_an_unknown_or_a_refused_schedule_is_refused():
    wrong = refused(schedule("b", "nobody"), schedule("c", "b"))
    assert "'nobody', which is not declared" in wrong["b"]
    assert "'b', which was refused" in wrong["c"]


def test_a_fixed_delay_has_no_fire_times_to_wait_for():
    assert "fixed delay" in refused(schedule("a", kind="delay"), schedule("b", "a"))["b"]


def test_a_declared_chain_is_read_from_the_code():
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {
        "extract": {"task": "t", "schedule": cron("0 2 * * *")},
        "report": {"task": "t", "schedule": cron("0 2 * * *", after="extract")},
        "mail": {
            "task": "t",
            "schedule": cron("0 2 * * *", after={"any": ["extract", "report"], "on_failure": True}),
        },
        "wrong": {"task": "t", "schedule": delay("5m", after="extract")},
    }
    found, wrong = examine(app, max_payload_bytes=10_000)
    after = {each.name: each.after for each in found}
    assert after == {
        "extract": None,
        "report": After(("extract",)),
        "mail": After(("extract", "report"), Join.ANY, on_failure=True),
    }
    assert wrong[0][0] == "wrong"
    for each in found:
        assert from_data(to_data(each)) == each


@pytest.mark.parametrize(
    "given", [[], 5, [5], {"any": []}, {"all": "a", "any": "b"}, {"any": "a", "when": 1}]
)
def test_what_names_no_schedule_is_refused(given):
    with pytest.raises(TypeError):
        cron("0 2 * * *", after=given)


@pytest.mark.parametrize("on_failure", [False, True])
@pytest.mark.parametrize("join", list(Join))
def test_a_decision_once_made_is_not_changed_by_what_ends_later(join, on_failure):
    after = After(("a", "b", "c"), join, on_failure=on_failure)
    for states in itertools.product(Upstream, repeat=3):
        verdict = decide(after, states)
        ends = itertools.product([s for s in Upstream if s is not Upstream.OPEN], repeat=3)
        later = [
            tuple(end if state is Upstream.OPEN else state for state, end in zip(states, each, strict=True))
            for each in ends
        ]
        outcomes = {decide(after, each) for each in later}
        assert None not in outcomes, "when all have ended there is a decision"
        if verdict is not None:
            assert outcomes == {verdict}
