"""A timing in English, said from its parsed values, so that what is read is what will happen."""

from datetime import timedelta

from cronq.schedule import Dst
from cronq.timing.base import Timing, iso
from cronq.timing.bounds import Bounded, Union
from cronq.timing.cron import Cron
from cronq.timing.durations import in_words
from cronq.timing.exclusions import Excluding
from cronq.timing.explain_days import days_phrase
from cronq.timing.expression import Expression
from cronq.timing.fields import HOUR, MINUTE, SECOND, Kind
from cronq.timing.periods import At, Delay, Every, Unreadable
from cronq.timing.phrases import numbers, series, stepped
from cronq.timing.rrule import RRule

MOST_TIMES = 6
HALF_OPEN = "it runs at every instant at which the clock matches, both copies of a repeated hour included"
FIXED = {
    Dst.VIXIE: "a time that a clock change skips runs at the first instant after the gap, "
    "one that is repeated runs once",
    Dst.SKIP: "a time that a clock change skips does not run that day, one that is repeated runs once",
    Dst.BOTH: "a time that a clock change skips runs at the first instant after the gap, "
    "one that is repeated runs twice",
    Dst.UTC: "",
}


def explain(timing: Timing) -> str:  # noqa: PLR0911 - each kind of timing has its own sentence
    """Return one or more English sentences that say when `timing` fires."""
    match timing:
        case Cron():
            return _cron(timing)
        case Every():
            since = iso(timing.anchor)
            return f"Every {in_words(timing.period)}, counted from {since}; it never drifts."
        case Delay():
            return f"{in_words(timing.period)} after the end of the previous job."
        case At():
            return f"Once, at {iso(timing.instant)}."
        case RRule():
            return f"By the recurrence rule {timing.text!r}, on the clocks of {timing.tz}."
        case Union():
            return " And: ".join(explain(each) for each in timing.of)
        case Bounded():
            return explain(timing.of) + _bounds(timing)
        case Excluding():
            instead = {"skip": "does not run", "next": "runs on the next business day instead"}
            then = instead.get(timing.then, "runs on the previous business day instead")
            return f"{explain(timing.of)} What the calendar {timing.calendar.name!r} closes {then}."
        case Unreadable():
            return "Nobody knows when: its stored definition cannot be read."
        case _:
            return repr(timing)


def _bounds(timing: Bounded) -> str:
    said = ""
    if timing.start is not None:
        said += f" Not before {iso(timing.start)}."
    if timing.end is not None:
        said += f" Not after {iso(timing.end)}."
    if timing.limit is not None:
        said += f" At most {timing.limit} times."
    return said


def _cron(timing: Cron) -> str:
    said = [expression_phrase(each, known=timing.hash_id is not None) for each in timing.parsed]
    sentence = "; and ".join(said)
    clocks = "UTC" if timing.dst is Dst.UTC else timing.tz
    sentence = f"{sentence[0].upper()}{sentence[1:]}, on the clocks of {clocks}."
    if clocks in ("UTC", "Etc/UTC"):
        return sentence
    rules = []
    expressions = [each for each in timing.parsed if isinstance(each, Expression)]
    if any(not each.interval for each in expressions):
        rules.append(FIXED[timing.dst])
    if any(each.interval for each in expressions):
        rules.append(HALF_OPEN)
    return f"{sentence} When clocks change: {'; otherwise '.join(rules)}." if rules else sentence


def expression_phrase(parsed: Expression | timedelta, *, known: bool = True) -> str:
    """Return what one parsed expression says, such as "at 02:30 every day"; `known`: `H` has its values."""
    if isinstance(parsed, timedelta):
        return f"every {in_words(parsed)}, counted from 1970-01-01T00:00:00Z"
    if parsed.hashed and not known:
        return f"{_hashed_phrase(parsed)} {days_phrase(parsed)}"
    return f"{_time_phrase(parsed)} {days_phrase(parsed)}"


def _hashed_phrase(parsed: Expression) -> str:
    drawn = [
        kind.name
        for kind, each in ((SECOND, parsed.second), (MINUTE, parsed.minute), (HOUR, parsed.hour))
        if each.hashed
    ]
    if not drawn:
        return _time_phrase(parsed)
    rest = "" if parsed.hour.hashed else _within_hours(parsed)
    step = stepped(numbers(parsed.minute.mask))
    if step and drawn == [MINUTE.name]:
        return f"every {step} minutes{rest}, from one drawn from the schedule's id,"
    return f"at a {series(drawn)} drawn from the schedule's id{rest}"


def _time_phrase(parsed: Expression) -> str:
    seconds = numbers(parsed.second.mask)
    minutes, hours = numbers(parsed.minute.mask), numbers(parsed.hour.mask)
    if len(seconds) * len(minutes) * len(hours) <= MOST_TIMES:
        with_seconds = seconds != [0]
        times = [
            f"{hour:02}:{minute:02}" + (f":{second:02}" if with_seconds else "")
            for hour in hours
            for minute in minutes
            for second in seconds
        ]
        return f"at {series(times)}"
    said = "" if seconds == [0] else _field_phrase(SECOND, parsed.second.mask) + " of "
    if seconds != [0] and len(minutes) == MINUTE.size:
        return said.removesuffix(" of ") + _within_hours(parsed)
    return said + _field_phrase(MINUTE, parsed.minute.mask) + _within_hours(parsed)


def _field_phrase(kind: Kind, mask: int) -> str:
    """Return "every minute", "every 15 minutes" or "minute 5 and 20"."""
    values = numbers(mask)
    if len(values) == kind.size:
        return f"every {kind.name}"
    step = stepped(values)
    if step and values[0] < step and values[-1] + step >= kind.size and len(values) > 1:
        uneven = "" if kind.size % step == 0 else f" (and a shorter pause at the end of the {_whole(kind)})"
        offset = "" if values[0] == 0 else f" from {kind.name} {values[0]}"
        return f"every {step} {kind.name}s{offset}{uneven}"
    return f"at {kind.name} {series([str(each) for each in values])}"


def _within_hours(parsed: Expression) -> str:
    """Return " of every hour" or in which hours."""
    values = numbers(parsed.hour.mask)
    if len(values) == HOUR.size:
        single = parsed.minute.mask.bit_count() < MINUTE.size and not stepped(numbers(parsed.minute.mask))
        return " of every hour" if single else ""
    if values == list(range(values[0], values[-1] + 1)):
        return f" from {values[0]:02}:00 to {values[-1]:02}:59"
    return f" in the hours {series([f'{each:02}' for each in values])}"


def _whole(kind: Kind) -> str:
    return {"second": "minute", "minute": "hour"}.get(kind.name, "day")
