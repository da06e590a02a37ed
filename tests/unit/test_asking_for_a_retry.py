"""`self.retry()` of a plain Celery task, while it works on a job."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery

from cronq.progress.reporter import Report, reporting
from cronq.worker.task import UNLIMITED, _asking, _work
from cronq.worker.verdict import RetryAsked

app = Celery("asking", set_as_current=False)


@app.task(max_retries=2, default_retry_delay=7)
def task() -> None:
    pass


@pytest.fixture(autouse=True)
def on_a_job() -> Iterator[None]:
    token = reporting.set(Report("j1", 1, interval_s=0, send=lambda _report: None))
    yield
    reporting.reset(token)


def asked(**how: Any) -> RetryAsked:
    with pytest.raises(RetryAsked) as caught:
        _asking(task, task.retry)(**how)
    return caught.value


def test_the_task_says_how_often_and_how_long_unless_the_call_does() -> None:
    plain, special = asked(), asked(countdown=3, max_retries=9)
    assert (plain.wait_s, plain.max_attempts) == (7, 3)
    assert (special.wait_s, special.max_attempts) == (3, 10)
    later = asked(eta=datetime.now(UTC) + timedelta(minutes=1))
    assert 50 < (later.wait_s or 0) <= 60


def test_the_error_that_is_handled_at_this_moment_is_the_cause() -> None:
    handled, given = ConnectionError("gone"), ValueError("odd")
    try:
        raise handled
    except ConnectionError:
        assert asked().cause is handled
        assert asked(exc=given).cause is given
    assert asked().cause is None


def test_other_arguments_are_not_taken_and_it_is_said_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asked(args=[2])
        asked(queue="slow")
    assert [record.message.split()[0] for record in caplog.records] == ["retry.changes_ignored"] * 2


def test_a_task_without_a_limit_is_tried_again_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "max_retries", None)
    assert asked().max_attempts is None
    task.push_request(id="j1", hostname="w@h")
    assert _work(task, task.request, {}, ()).default_attempts == UNLIMITED
    task.pop_request()
