"""What users write becomes a schedule, or a refusal that says what to write."""

from datetime import UTC, date, datetime, timedelta

import pytest
from celery import Celery
from celery.schedules import crontab

from cronq.beat.catalog import examine
from cronq.declaration import at, cron, declared, delay, every, rrule
from cronq.schedule import CatchUp, Overlap
from cronq.timing import Calendar, InvalidTiming, timing_from

LIMIT = 262_144
FRIDAY_13TH = crontab(minute=0, hour=0, day_of_month=13, day_of_week="fri")
NEW_YEAR = Calendar("new-year", days=((date(2027, 1, 1), date(2027, 1, 1)),))


@pytest.fixture
def app():
    kept, declared[:] = list(declared), []
    yield Celery("shop", broker="memory://", set_as_current=False)
    declared[:] = kept


def only(app):
    (schedule,), refused = examine(app, max_payload_bytes=LIMIT)
    assert refused == []
    return schedule


def test_a_decorated_task_is_scheduled_under_its_name_and_stays_a_task(app):
    @cron("0 6 * * *", tz="Europe/Berlin", overlap="queue", catch_up="all", jitter="30s", tenant="acme")
    @app.task(name="shop.report")
    def report(): ...

    schedule = only(app)
    assert (schedule.name, schedule.task, schedule.tenant) == ("shop.report", "shop.report", "acme")
    assert (schedule.overlap, schedule.catch_up) == (Overlap.QUEUE, CatchUp.ALL)
    assert schedule.jitter == timedelta(seconds=30)
    assert report.name == "shop.report"


def test_a_task_that_is_scheduled_twice_has_two_names(app):
    @every("1m")
    @cron("@daily")
    @app.task(name="shop.twice")
    def twice(): ...

    schedules, _refused = examine(app, max_payload_bytes=LIMIT)
    assert [schedule.name for schedule in schedules] == ["shop.twice", "shop.twice#2"]


def test_a_decorator_below_the_one_that_makes_the_task_is_refused_with_the_right_order(app):
    @app.task(name="shop.wrong")
    @every("1m")
    def wrong(): ...

    @every("1m")
    @app.task(name="shop.right")
    def right(): ...

    found, ((name, why),) = examine(app, max_payload_bytes=LIMIT)
    assert [schedule.name for schedule in found] == ["shop.right"]  # the others go on
    assert name.endswith("wrong")
    assert "above @app.task" in why


def test_two_tasks_never_share_a_name(app):
    @every("1m", name="dup")
    @app.task(name="shop.first")
    def first(): ...

    @every("1m", name="dup")
    @app.task(name="shop.second")
    def second(): ...

    app.conf.beat_schedule = {
        "dup": {"task": "shop.third", "schedule": 5.0},
        "other": {"task": "shop.third", "schedule": 5.0},
    }
    found, refused = examine(app, max_payload_bytes=LIMIT)
    assert [(each.name, each.task) for each in found] == [("dup", "shop.first"), ("other", "shop.third")]
    for (name, why), task in zip(refused, ["shop.second", "shop.third"], strict=True):
        assert name == "dup"
        assert "shop.first" in why
        assert task in why


@pytest.mark.parametrize(
    ("given", "after", "fires"),
    [
        (crontab(minute="*/15"), "2026-11-21T05:01:00", "2026-11-21T05:15:00"),
        # Celery asks for both day fields: only a Friday the 13th.
        (FRIDAY_13TH, "2026-11-21T00:00:00", "2027-08-13T00:00:00"),
        (30.0, "2026-11-21T05:00:01", "2026-11-21T05:00:30"),
        (timedelta(hours=1), "2026-11-21T05:01:00", "2026-11-21T06:00:00"),
    ],
)
def test_celery_s_own_schedules_mean_what_they_mean_in_celery(app, given, after, fires):
    app.conf.beat_schedule = {"x": {"task": "t", "schedule": given, "options": {"queue": "q", "priority": 3}}}
    schedule = only(app)
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert timing_from(schedule.timing).next(moment) == datetime.fromisoformat(fires).replace(tzinfo=UTC)
    assert (schedule.queue, schedule.priority) == ("q", 3)


def test_one_wrong_entry_leaves_the_others_alone(app):
    app.conf.beat_schedule = {
        "good": {"task": "t", "schedule": cron("@hourly")},
        "not JSON": {"task": "t", "schedule": 5.0, "args": (object(),)},
        "too large": {"task": "t", "schedule": 5.0, "args": ("x" * LIMIT,)},
        "unknown kind": {"task": "t", "schedule": "soon"},
    }
    found, refused = examine(app, max_payload_bytes=LIMIT)
    assert [schedule.name for schedule in found] == ["good"]
    assert sorted(name for name, _why in refused) == ["not JSON", "too large", "unknown kind"]


def test_what_falls_into_a_calendar_moves_to_the_next_business_day(app):
    when = cron("0 9 * * *", exclude=NEW_YEAR, if_excluded="next", end="2027-02-01T00:00:00+00:00")
    assert when.timing.next(datetime(2026, 12, 31, 10, tzinfo=UTC)) == datetime(2027, 1, 2, 9, tzinfo=UTC)


def test_every_way_to_say_when_is_kept_as_data_that_means_the_same():
    moment = datetime(2026, 11, 21, 5, tzinfo=UTC)
    for when in (
        cron("0 6 * * *", "30 18 * * *", tz="Europe/Berlin"),
        every("90s", limit=3, start=moment),
        delay(600),
        at("2027-01-01T09:00:00+01:00"),
        rrule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18"),
    ):
        schedule = when.schedule(name="x", task="t")
        assert timing_from(schedule.timing).next(moment) == when.timing.next(moment)


def test_an_unknown_policy_is_refused_with_the_known_ones():
    with pytest.raises(TypeError, match=r"has no 'overlaps'; it has .*overlap"):
        cron("@daily", overlaps="skip")


def test_a_wrong_expression_is_refused_where_it_is_written():
    with pytest.raises(InvalidTiming, match="minute"):
        cron("61 * * * *")


def test_a_schedule_object_also_works_under_celery_s_own_beat():
    when = every("1h")
    due, wait = when.is_due(datetime.now(UTC) - timedelta(hours=2))
    assert due
    assert 0 < wait <= 3600
