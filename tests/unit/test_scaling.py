"""How many jobs at a time a queue wants, and the files that scale workers by it."""

from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as some

from cronq.scaling import Load, wanted_slots

DEPLOY = Path(__file__).parents[2] / "deploy"


def wanted(**load: float) -> int:
    return wanted_slots(Load(**load), window_s=300)  # type: ignore[arg-type]


def test_a_queue_without_work_wants_no_worker() -> None:
    assert wanted() == 0


def test_any_work_wants_one() -> None:
    assert wanted(waiting=1) == wanted(running=1) == wanted(ended=1, worked_s=0.1) == 1


def test_steady_work_wants_what_it_takes() -> None:
    assert wanted(ended=600, worked_s=1200) == 4, "two a second that take two seconds each"


def test_a_backlog_wants_to_be_gone_within_a_minute() -> None:
    assert wanted(waiting=10_000, ended=60, worked_s=30) == 84, "10,000 · 0.5 s / 60 s, and what comes"
    assert wanted(waiting=600) == 10, "taken to last a second each while none has ended"


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
