"""What a body reports is throttled, never lost, and costs nothing where nobody listens."""

import threading
from typing import Any

import pytest

from cronq import progress
from cronq.errors import Cancelled
from cronq.progress import reporter
from cronq.progress.reporter import MAX_LINE, MAX_PENDING_LINES, Report, reporting

INTERVAL_S = 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reporter.time, "monotonic", clock)
    return clock


@pytest.fixture
def sent() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def report(clock: Clock, sent: list[dict[str, Any]]) -> Any:
    report = Report("j", 1, interval_s=INTERVAL_S, send=lambda each: sent.append(each.state()))
    token = reporting.set(report)
    yield report
    reporting.reset(token)


def test_of_many_reports_within_one_interval_the_first_is_sent_and_the_last_is_kept(
    report: Report, sent: list[dict[str, Any]]
) -> None:
    for done in range(1, 10_001):
        progress.update(done, 10_000)
    assert [state["steps_completed"] for state in sent] == [1]
    report.flush()
    assert [state["steps_completed"] for state in sent] == [1, 10_000]


def test_after_the_interval_the_next_report_is_sent(
    clock: Clock, report: Report, sent: list[dict[str, Any]]
) -> None:
    progress.update(1)
    clock.now += INTERVAL_S
    progress.update(2)
    assert [state["steps_completed"] for state in sent] == [1, 2]


def test_a_new_step_is_sent_at_once_but_steps_that_change_with_every_call_are_throttled_too(
    clock: Clock, report: Report, sent: list[dict[str, Any]]
) -> None:
    progress.update(0, 3, "load")
    clock.now += 1
    progress.update(1, 3, "add up")
    assert [state["current_step"] for state in sent] == ["load", "add up"]
    for row in range(1000):
        progress.update(row, 1000, f"row {row}")
    assert len(sent) == 2


def test_track_reports_each_item_once_it_is_done(clock: Clock, report: Report) -> None:
    seen = [(item, report.done, report.total) for item in progress.track("abc", step="letters")]
    assert seen == [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)]
    assert report.done == 3


def test_of_too_many_lines_the_last_are_kept_each_cut(report: Report) -> None:
    for number in range(MAX_PENDING_LINES + 5):
        progress.log(f"{number} " + "x" * MAX_LINE)
    lines = report.take_lines()
    assert len(lines) == MAX_PENDING_LINES
    assert lines[0].startswith("5 ")
    assert {len(line) for line in lines} == {MAX_LINE}
    assert report.take_lines() == []


def test_a_stop_is_raised_in_the_body_and_nothing_more_is_sent(
    report: Report, sent: list[dict[str, Any]]
) -> None:
    report.stop = Cancelled
    with pytest.raises(Cancelled):
        progress.update(1)
    assert sent == []


def test_outside_a_job_nothing_happens() -> None:
    progress.update(1, 2, "step")
    progress.log("line")
    assert list(progress.track([1, 2])) == [1, 2]


def test_the_last_word_is_not_overtaken_by_a_report_that_is_being_sent(sent: list[dict[str, Any]]) -> None:
    def send(each: Report) -> None:
        state = each.state()
        if not each.closed:
            closing.start()
            closing.join(0.2)  # it has to wait until this one is sent, and must not pass it
        sent.append(state)

    report = Report("j", 1, interval_s=INTERVAL_S, send=send)
    closing = threading.Thread(target=lambda: report.close(completed=True))
    report.update(4, 5, None)
    closing.join()
    assert [each["progress"] for each in sent] == [80, 100]
