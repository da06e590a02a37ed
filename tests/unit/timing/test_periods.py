from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronq.timing import At, Delay, Every, InvalidTiming, after_end, duration, fires_between, timing_from
from cronq.timing.durations import in_words

NOW = datetime(2026, 6, 1, 12, 0, 0, 1, tzinfo=UTC)


def test_a_fixed_rate_counts_from_its_anchor_and_not_from_when_it_is_asked() -> None:
    timing = Every(timedelta(seconds=90), datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC))
    fires = list(fires_between(timing, NOW, NOW + timedelta(minutes=5)))
    assert all((fire - timing.anchor) % timing.period == timedelta(0) for fire in fires)
    assert len(fires) in (3, 4)


@given(st.integers(1, 10**12), st.integers(0, 10**16), st.integers(0, 10**16))
def test_next_and_previous_of_a_fixed_rate_are_exact_to_the_microsecond(
    period: int, anchor: int, at: int
) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    timing = Every(timedelta(microseconds=period), epoch + timedelta(microseconds=anchor))
    instant = epoch + timedelta(microseconds=at)
    after, before = timing.next(instant), timing.previous(instant)
    assert after is not None
    assert before is not None
    assert before < instant < after
    assert after - before in (timing.period, 2 * timing.period)
    assert (after - timing.anchor) % timing.period == timedelta(0)
    assert timing.previous(after) == (instant if after - before == 2 * timing.period else before)


def test_a_fixed_delay_follows_the_end_of_the_last_job() -> None:
    timing = Delay(timedelta(minutes=5))
    assert timing.next(NOW) is None
    assert timing.after_end(NOW) == NOW + timedelta(minutes=5)
    assert after_end(timing, NOW) == NOW + timedelta(minutes=5)
    assert after_end(Every(timedelta(1)), NOW) is None


def test_a_fixed_delay_with_a_start_fires_there_first() -> None:
    timing = Delay(timedelta(minutes=5), NOW)
    assert timing.next(NOW - timedelta(seconds=1)) == NOW
    assert timing.next(NOW) is None
    assert timing.previous(NOW + timedelta(seconds=1)) == NOW


def test_a_one_shot_fires_once() -> None:
    timing = At.after(NOW, timedelta(minutes=30))
    assert timing.next(NOW) == NOW + timedelta(minutes=30)
    assert timing.next(NOW + timedelta(minutes=30)) is None
    assert timing.previous(NOW + timedelta(minutes=30)) is None
    assert At(datetime.fromisoformat("2026-06-01T14:00:00+02:00")).instant == datetime(
        2026, 6, 1, 12, tzinfo=UTC
    )


def test_periods_that_never_move_are_refused() -> None:
    for make in (Every, Delay):
        with pytest.raises(InvalidTiming, match="more than nothing"):
            make(timedelta(0))
    with pytest.raises(InvalidTiming, match="no offset"):
        At(datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("2d", 172800),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("1w", 604800),
        ("90S", 90),
    ],
)
def test_lengths_of_time_are_read(text: str, wanted: float) -> None:
    assert duration(text) == timedelta(seconds=wanted)
    assert duration(in_words(duration(text))) == duration(text)


@pytest.mark.parametrize("text", ["", "0s", "5", "x", "1h x", "-5s", "999999999w", "1e9s", "5 s", "٣s"])
def test_other_lengths_of_time_are_refused(text: str) -> None:
    with pytest.raises(InvalidTiming, match="90s"):
        duration(text)


@pytest.mark.parametrize(
    "timing",
    [
        Every(timedelta(microseconds=1_500_001)),
        Every(timedelta(days=1), NOW),
        Delay(timedelta(seconds=5)),
        Delay(timedelta(seconds=5), NOW),
        At(NOW),
    ],
)
def test_stored_data_gives_back_an_equal_timing(timing: Every | Delay | At) -> None:
    assert timing_from(timing.to_data()) == timing
    assert hash(timing_from(timing.to_data())) == hash(timing)
