from datetime import UTC, datetime, timedelta

from cronq.timing import Cron, fires_between
from cronq.timing.replan import moved, zone_data_version

START = datetime(2026, 6, 1, tzinfo=UTC)
END = START + timedelta(days=3)


def test_what_an_edit_adds_and_takes_away_is_listed() -> None:
    planned = list(fires_between(Cron("0 9 * * *"), START, END))
    found = moved(Cron("0 9,10 * * 1-2"), planned, START, END)
    assert found.gone == (datetime(2026, 6, 3, 9, tzinfo=UTC),)
    assert found.new == (datetime(2026, 6, 1, 10, tzinfo=UTC), datetime(2026, 6, 2, 10, tzinfo=UTC))
    assert found


def test_nothing_moved_is_false() -> None:
    assert not moved(Cron("0 9 * * *"), fires_between(Cron("0 9 * * *"), START, END), START, END)


def test_the_release_of_the_zone_data_is_known() -> None:
    assert zone_data_version()[:2] == "20"
