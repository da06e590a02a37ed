"""Time travel for users' tests: the production planner on a clock that the test owns."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery

from cronq import current_job
from cronq.declaration import cron, declared, delay
from cronq.testing import Timeline

START = datetime(2026, 3, 28, 12, tzinfo=UTC)


@pytest.fixture
def app():
    kept, declared[:] = list(declared), []
    app = Celery("travel", broker="memory://", set_as_current=False)
    yield app
    declared[:] = kept


def test_a_daily_task_runs_once_a_local_day_across_the_change_to_summer_time(app):
    @cron("0 6 * * *", tz="Europe/Berlin")
    @app.task(name="report")
    def report():
        return current_job().fire_time.isoformat()

    ran = Timeline(app, start=START).advance(timedelta(days=2))

    assert [each.fire_time.hour for each in ran] == [4, 4]  # 06:00 in Berlin, both days after the change
    assert ran[0].result == "2026-03-29T04:00:00+00:00"


def test_what_passed_while_no_beat_ran_follows_the_catch_up_policy(app):
    @cron("0 * * * *", catch_up="latest", catch_up_window="6h")
    @app.task(name="hourly")
    def hourly():
        return "ran"

    ran = Timeline(app, start=START).sleep(timedelta(hours=3, minutes=30))

    assert [(each.fire_time.hour, each.result, each.reason) for each in ran] == [
        (13, None, "coalesced"),
        (14, None, "coalesced"),
        (15, "ran", None),
    ]


def test_a_fixed_delay_counts_from_the_end_and_an_error_is_reported(app):
    @delay("10m")
    @app.task(name="after")
    def after():
        raise ValueError("broken")

    ran = Timeline(app, start=START).advance(timedelta(minutes=30))

    assert [each.fire_time.minute for each in ran] == [10, 20, 30]
    assert all(isinstance(each.error, ValueError) for each in ran)


def test_a_schedule_that_cannot_be_is_refused_with_its_name(app):
    app.conf.beat_schedule = {"wrong": {"task": "x", "schedule": object()}}
    with pytest.raises(ValueError, match="schedule 'wrong'"):
        Timeline(app, start=START)
