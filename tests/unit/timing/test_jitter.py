from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cronq.timing import group_offset, jitter

FIRE = datetime(2026, 6, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@given(st.text(max_size=40), st.integers(0, 10**9), st.integers(1, 10**9))
def test_jitter_repeats_itself_and_never_reaches_the_next_fire(name: str, spread: int, gap: int) -> None:
    room, following = timedelta(microseconds=spread), FIRE + timedelta(microseconds=gap)
    found = jitter(name, FIRE, room, following)
    assert found == jitter(name, FIRE, room, following)
    assert timedelta(0) <= found
    assert found < min(room, following - FIRE) or not room


def test_jitter_is_spread_evenly_over_fire_times_and_over_schedules() -> None:
    for draws in (
        [jitter("a", FIRE + n * MINUTE, MINUTE, None) for n in range(6000)],
        [jitter(str(n), FIRE, MINUTE, None) for n in range(6000)],
        [group_offset(str(n), MINUTE) for n in range(6000)],
    ):
        counts = [0] * 60
        for each in draws:
            counts[each // timedelta(seconds=1)] += 1
        chi_square = sum((count - 100) ** 2 / 100 for count in counts)
        assert chi_square < 110  # 59 degrees of freedom: p is about 0.00006


def test_without_a_spread_there_is_no_jitter() -> None:
    assert jitter("a", FIRE, timedelta(0), None) == timedelta(0)


def test_a_group_offset_does_not_depend_on_the_fire_time() -> None:
    assert group_offset("a", MINUTE) == group_offset("a", MINUTE)
    assert group_offset("a", MINUTE) != group_offset("b", MINUTE)
