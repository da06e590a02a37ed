"""In UTC and away from their known bugs, croniter and cronsim must agree with cronq."""

from datetime import UTC, datetime

from croniter import croniter
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from cronq.timing import Cron, InvalidTiming

MINUTES = st.sampled_from(["*", "0", "*/5", "7,37", "10-20", "10-40/7", "59"])
HOURS = st.sampled_from(["*", "0", "9-17", "*/6", "3,15", "23"])
# croniter reads `1-1` as every day, and joins a starred step by OR; both know no day but these.
DAYS = st.sampled_from(["*", "1", "13", "1,15", "10-12", "L", "28"])
MONTHS = st.sampled_from(["*", "1", "2", "6-8", "JAN,JUL", "*/3"])
WEEKDAYS = st.sampled_from(["*", "0", "1-5", "MON", "SAT,SUN", "3", "7"])
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)).map(lambda each: each.replace(tzinfo=UTC))  # noqa: DTZ001


@given(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS, INSTANTS)
@settings(max_examples=400, deadline=None)
def test_croniter_and_cronsim_name_the_same_fire_times_in_utc(  # noqa: PLR0917 - hypothesis draws them all
    minute: str, hour: str, day: str, month: str, weekday: str, instant: datetime
) -> None:
    expression = f"{minute} {hour} {day} {month} {weekday}"
    timing = Cron(expression)
    theirs, simulated, found = croniter(expression, instant), CronSim(expression, instant), instant
    for _ in range(5):
        following = timing.next(found)
        assert following is not None
        found = following
        assert found == theirs.get_next(datetime)
        assert found == next(simulated)


@given(
    MINUTES,
    HOURS,
    st.sampled_from(["*", "LW", "L", "*/2"]),
    MONTHS,
    st.sampled_from(["*", "5L", "MON#2", "*/2"]),
    INSTANTS,
)
@settings(max_examples=200, deadline=None)
def test_cronsim_agrees_on_the_days_that_croniter_does_not_know(  # noqa: PLR0917 - hypothesis draws them all
    minute: str, hour: str, day: str, month: str, weekday: str, instant: datetime
) -> None:
    expression = f"{minute} {hour} {day} {month} {weekday}"
    try:
        simulated = CronSim(expression, instant)
        timing = Cron(expression)
    except (CronSimError, InvalidTiming):
        return
    found = instant
    for _ in range(3):
        following = timing.next(found)
        assert following is not None
        found = following
        assert found == next(simulated)
