"""Time travel for users' tests: the production planner on a clock that the test owns."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery

from cronq import current_job
from cronq.declaration import cron, declared, delay
from cronq.schedule import Reason
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


def tenants(count):
    for number in range(count):
        yield {"item": f"t{number}", "tenant": f"t{number}"}
    yield {"item": "t0"}


def broken():
    raise OSError("the list of tenants is away")


def test_each_item_of_a_fan_out_runs_once_and_then_its_end_also_if_one_failed(app):
    @app.task(name="sum_up")
    def sum_up(batch):
        return batch["completed"], batch["failed"], batch["total"]

    @cron("0 0 * * *", fan_out={"function": tenants, "kwargs": {"count": 3}}, on_complete=sum_up)
    @app.task(name="of_tenant")
    def report(tenant):
        if tenant == "t1":
            raise ValueError(tenant)
        return current_job().tenant

    ran = Timeline(app, start=START).advance(timedelta(days=1))

    assert [(each.task, each.item, each.result) for each in ran] == [
        ("of_tenant", "t0", "t0"),
        ("of_tenant", "t1", None),
        ("of_tenant", "t2", "t2"),
        ("sum_up", None, (2, 1, 3)),
    ]
    assert isinstance(ran[1].error, ValueError)
    assert {each.fire_time for each in ran} == {START + timedelta(hours=12)}


def test_a_fan_out_whose_items_cannot_be_found_has_failed(app):
    @cron("0 0 * * *", fan_out=broken)
    @app.task(name="never")
    def report(tenant):
        return tenant

    (ran,) = Timeline(app, start=START).advance(timedelta(days=1))
    assert isinstance(ran.error, OSError)


@pytest.mark.parametrize(("fails", "mailed"), [(False, "sent"), (True, None)])
def test_a_chain_runs_in_its_order_and_ends_where_one_fails(app, fails, mailed):
    @app.task(name=f"extract {fails}")
    def extract():
        if fails:
            raise ValueError("nothing to extract")

    @app.task(name=f"step {fails}")
    def step():
        return "sent"

    cron("0 0 * * *", name="mail", after="report")(step)
    cron("0 0 * * *", name="report", after="extract")(step)
    cron("0 0 * * *", name="extract")(extract)

    ran = Timeline(app, start=START).advance(timedelta(days=1))

    assert [each.schedule for each in ran] == ["extract", "report", "mail"]
    assert ran[-1].result == mailed
    assert [each.reason for each in ran[1:]] == ([Reason.UPSTREAM] * 2 if fails else [None] * 2)


def test_a_start_without_an_offset_is_refused(app):
    with pytest.raises(ValueError, match="has no offset"):
        Timeline(app, start=START.replace(tzinfo=None))
