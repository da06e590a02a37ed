"""The DST changes that other crons get wrong, by name."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from cronq.schedule import Dst, Reason
from cronq.timing import Cron, fires_between, omissions
from cronq.timing.zones import zone


def local_fires(expression: str, tz: str, day: str, dst: Dst = Dst.VIXIE, hours: int = 36) -> list[str]:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(seconds=1)
    timing = Cron(expression, tz, dst)
    info = zone(tz).info
    return [
        each.astimezone(info).isoformat()
        for each in fires_between(timing, start, start + timedelta(hours=hours))
    ]


@pytest.mark.parametrize(
    ("expression", "tz", "day", "wanted"),
    [
        ("30 2 * * *", "America/New_York", "2025-03-09T05:00", "2025-03-09T03:00:00-04:00"),
        ("30 1 * * *", "Europe/London", "2025-03-30T00:00", "2025-03-30T02:00:00+01:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2025-10-04T13:30", "2025-10-05T02:30:00+11:00"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-04T02:00", "2018-11-04T01:00:00-02:00"),
        ("30 2 30 12 *", "Pacific/Apia", "2011-12-30T09:00", "2011-12-31T00:00:00+14:00"),
    ],
)
def test_a_fixed_time_inside_a_gap_runs_at_the_first_valid_instant(
    expression: str, tz: str, day: str, wanted: str
) -> None:
    assert local_fires(expression, tz, day, hours=20)[0] == wanted


def test_several_matches_inside_one_gap_run_once() -> None:
    assert local_fires("0,15,30,45 2 * * *", "America/New_York", "2025-03-09T05:00", hours=20) == [
        "2025-03-09T03:00:00-04:00"
    ]


def test_a_gap_that_ends_on_a_match_runs_once() -> None:
    assert local_fires("0,30 2,3 * * *", "America/New_York", "2025-03-09T05:00", hours=20) == [
        "2025-03-09T03:00:00-04:00",
        "2025-03-09T03:30:00-04:00",
    ]


@pytest.mark.parametrize(
    ("expression", "tz", "day", "wanted"),
    [
        ("30 1 * * *", "America/New_York", "2025-11-02T04:00", "2025-11-02T01:30:00-04:00"),
        ("30 1 * * *", "Europe/London", "2025-10-25T23:00", "2025-10-26T01:30:00+01:00"),
        ("45 1 * * *", "Australia/Lord_Howe", "2025-04-05T13:00", "2025-04-06T01:45:00+11:00"),
    ],
)
def test_a_fixed_time_that_is_repeated_runs_at_its_first_copy_only(
    expression: str, tz: str, day: str, wanted: str
) -> None:
    assert local_fires(expression, tz, day, hours=20) == [wanted]


def test_an_hourly_job_runs_in_both_copies_of_the_half_hour_that_lord_howe_repeats() -> None:
    assert local_fires("45 * * * *", "Australia/Lord_Howe", "2025-04-05T14:00", hours=3) == [
        "2025-04-06T01:45:00+11:00",
        "2025-04-06T01:45:00+10:30",
        "2025-04-06T02:45:00+10:30",
    ]


def test_every_five_minutes_has_no_pause_when_the_clocks_go_back() -> None:
    start = datetime(2025, 11, 2, 3, tzinfo=UTC)
    fires = list(fires_between(Cron("*/5 * * * *", "America/New_York"), start, start + timedelta(hours=6)))
    assert len(fires) == 72
    assert {later - earlier for earlier, later in pairwise(fires)} == {timedelta(minutes=5)}


def test_a_stepped_hour_that_the_gap_swallows_is_not_made_up_for() -> None:
    assert local_fires("0 */2 * * *", "America/New_York", "2025-03-09T05:00", hours=5) == [
        "2025-03-09T00:00:00-05:00",
        "2025-03-09T04:00:00-04:00",
    ]


def test_apia_has_no_30_december_2011_and_loses_no_run() -> None:
    fires = local_fires("30 2 * * *", "Pacific/Apia", "2011-12-29T00:00", hours=60)
    assert fires == [
        "2011-12-29T02:30:00-10:00",
        "2011-12-31T00:00:00+14:00",
        "2011-12-31T02:30:00+14:00",
    ]


@pytest.mark.parametrize(
    ("policy", "gap", "repeat"),
    [
        (Dst.VIXIE, ["03:00:00-04:00"], ["01:30:00-04:00"]),
        (Dst.SKIP, [], ["01:30:00-04:00"]),
        (Dst.BOTH, ["03:00:00-04:00"], ["01:30:00-04:00", "01:30:00-05:00"]),
        (Dst.UTC, ["22:30:00-04:00"], ["21:30:00-04:00"]),
    ],
)
def test_each_policy_at_a_gap_and_at_a_repeat(policy: Dst, gap: list[str], repeat: list[str]) -> None:
    assert [
        f[11:] for f in local_fires("30 2 * * *", "America/New_York", "2025-03-09T05:00", policy, 24)
    ] == gap
    found = local_fires("30 1 * * *", "America/New_York", "2025-11-01T13:00", policy, 24)
    assert [each[11:] for each in found] == repeat


def test_what_a_policy_leaves_out_is_named() -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    end = datetime(2026, 1, 1, tzinfo=UTC)
    skipped = list(omissions(Cron("30 2 * * *", "Europe/Paris", Dst.SKIP), start, end))
    assert [(each.fire_time, each.reason) for each in skipped] == [
        (datetime(2025, 3, 30, 1, tzinfo=UTC), Reason.DST_GAP),
        (datetime(2025, 10, 26, 1, 30, tzinfo=UTC), Reason.DST_REPEAT),
    ]
    assert not list(omissions(Cron("30 2 * * *", "Europe/Paris", Dst.BOTH), start, end))
    assert not list(omissions(Cron("*/30 * * * *", "Europe/Paris"), start, end))
