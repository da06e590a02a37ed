"""How many jobs at a time a queue wants, and the files that scale workers by it."""

from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as some

from cronq.scaling import CALM_S, Load, Scaler, wanted_slots

DEPLOY = Path(__file__).parents[2] / "deploy"


def wanted(**load: float) -> int:
    return wanted_slots([Load(**load)], window_s=300)  # type: ignore[arg-type]


def test_a_queue_without_work_wants_no_worker() -> None:
    assert wanted() == 0


def test_any_work_wants_one() -> None:
    assert wanted(waiting=1) == wanted(running=1) == wanted(ended=1, worked_s=0.1) == 1


def test_steady_work_wants_what_it_takes() -> None:
    assert wanted(ended=600, worked_s=1200) == 4, "two a second that take two seconds each"


def test_a_backlog_wants_to_be_gone_within_a_minute() -> None:
    assert wanted(waiting=10_000, ended=60, worked_s=30) == 84, "10,000 · 0.5 s / 60 s, and what comes"
    assert wanted(waiting=600) == 10, "taken to last a second each while none has ended"


def test_slow_jobs_do_not_hide_among_many_fast_ones() -> None:
    fast, slow = Load(ended=10_000, worked_s=10), Load(waiting=60, ended=10, worked_s=100)
    assert wanted_slots([fast, slow], window_s=300) == 11


@given(some.integers(0, 10**6), some.integers(0, 10**4), some.floats(0, 10**5))
def test_more_work_never_wants_less(waiting: int, ended: int, worked_s: float) -> None:
    worked_s = worked_s if ended else 0.0
    assert wanted(waiting=waiting + 1, ended=ended, worked_s=worked_s) >= wanted(
        waiting=waiting, ended=ended, worked_s=worked_s
    )


def test_the_files_for_kubernetes_scale_by_the_metric() -> None:
    keda, hpa = (yaml.safe_load((DEPLOY / f"{name}.yaml").read_text()) for name in ("keda", "hpa"))
    (trigger,) = keda["spec"]["triggers"]
    assert "cronq_wanted_slots" in trigger["metadata"]["query"]
    (metric,) = hpa["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] == "cronq_wanted_slots"
    assert trigger["metadata"]["threshold"] == metric["external"]["target"]["averageValue"]


def test_more_workers_come_at_once_and_go_when_fewer_have_been_enough_for_a_while() -> None:
    scaler = Scaler(least=1, most=4)

    def workers(slots: int, running: int, now: float) -> int:
        return scaler.workers(slots, each=2, running=running, now=now)

    assert workers(0, 1, 0.0) == 1
    assert workers(5, 1, 1.0) == 3
    assert workers(100, 3, 2.0) == 4, "never more than the most"
    assert workers(1, 4, 10.0) == 4
    assert workers(8, 4, 10.0 + CALM_S) == 4, "wanted again: the wait begins anew"
    assert workers(1, 4, 20.0) == workers(3, 4, 19.9 + CALM_S) == 4
    assert workers(3, 4, 20.0 + CALM_S) == 2
