"""One field of a cron expression becomes one set of values, or a refusal that says where and why.

Grammar of a field, by item of its comma-separated list: `*`, `?` (days only), `7`, `MON`, `8-17`, `22-2`
(wraps around), each with an optional step `/15`; `H`, `H(0-29)`, `H/15`, `H(8-17)/2`; for the day of the
month `L`, `L-3`, `LW`, `15W`; for the day of the week `5L`, `FRI#2`. Callers pass upper case.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """What one field may hold: its name, its smallest and largest value, and names for values."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  #: of `low`, `low` + 1, …
    hash_high: int | None = None  #: the largest value that `H` picks; None: it may not be hashed

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1


SECOND = Kind("second", 0, 59, hash_high=59)
MINUTE = Kind("minute", 0, 59, hash_high=59)
HOUR = Kind("hour", 0, 23, hash_high=23)
# H stays below 29, so that a hashed day exists in every month.
DAY = Kind("day of month", 1, 31, hash_high=28)
MONTH = Kind("month", 1, 12, MONTHS, 12)
# Sunday is 0; 7 is understood and folded onto it.
WEEKDAY = Kind("day of week", 0, 6, WEEKDAYS, 6)
YEAR = Kind("year", 1970, 2199)

NEAREST = re.compile(r"([0-9]{1,2})W")
BEFORE_LAST = re.compile(r"L-([0-9]{1,2})")
HASHED = re.compile(r"H(?:\(([^()]*)\))?")


class Special(NamedTuple):
    """A day that depends on the month: `last` (minus n), `last_workday`, `nearest`, `last_dow`, `nth_dow`."""

    rule: str
    number: int = 0
    nth: int = 0


class Field(NamedTuple):
    """The values of one field as a bit set (bit v is set when v is in), and how they were written."""

    mask: int
    specials: tuple[Special, ...] = ()
    star: bool = False  #: begins with `*` or `?`: Vixie's rule for joining the day fields asks for it
    interval: bool = False  #: holds a `*`, a range or a step: Vixie's rule for DST asks for it
    hashed: bool = False  #: holds an `H`


class FieldProblem(Exception):
    """What is wrong inside a field, at which offset, and what to write instead; becomes an InvalidTiming."""

    def __init__(self, problem: str, offset: int, suggestion: str) -> None:
        self.problem, self.offset, self.suggestion = problem, offset, suggestion
        super().__init__(problem)


@lru_cache(maxsize=4096)
def parse_field(kind: Kind, text: str, hash_id: str | None) -> Field:
    """Parse `text`, the upper-case source of one field; raises FieldProblem.

    `hash_id` is what `H` depends on; with None an `H` is checked but its value means nothing.
    """
    if text == "*":
        return Field(((1 << kind.size) - 1) << kind.low, star=True, interval=True)
    if text.isdigit():
        return Field(1 << _fold(kind, _value(kind, text, 0)))
    mask, specials, offset = 0, [], 0
    interval = hashed = False
    for item in text.split(","):
        special = _special(kind, item, offset)
        if special is not None:
            specials.append(special)
        else:
            bits, spread = _item(kind, item, offset, hash_id)
            mask |= bits
            interval = interval or spread
            hashed = hashed or item.startswith("H")
        offset += len(item) + 1
    return Field(mask, tuple(specials), text[0] in "*?", interval, hashed)


def _item(kind: Kind, item: str, offset: int, hash_id: str | None) -> tuple[int, bool]:
    """Return the bits of one list item and whether it is a star, a range or a step."""
    base, slash, step_text = item.partition("/")
    if not base:
        raise FieldProblem(
            "a value is missing", offset, f"write a number from {kind.low} to {kind.high}, or *"
        )
    step = _step(kind, step_text, offset + len(base) + 1) if slash else 1
    if base[0] == "H":
        return _hashed(kind, base, offset, step if slash else 0, hash_id), bool(slash)
    if base == "*":
        return _bits(kind, kind.low, kind.high, step), True
    if base == "?":
        if kind is not DAY and kind is not WEEKDAY:
            raise FieldProblem("? stands for a day only", offset, "write * for every value")
        return _bits(kind, kind.low, kind.high, step), True
    low_text, dash, high_text = base.partition("-")
    low = _value(kind, low_text, offset)
    if not dash:
        return (
            (_bits(kind, _fold(kind, low), kind.high, step), True)
            if slash
            else (1 << _fold(kind, low), False)
        )
    high = _value(kind, high_text, offset + len(low_text) + 1)
    return _range(kind, low, high, step, offset), low != high


def _range(kind: Kind, low: int, high: int, step: int, offset: int) -> int:
    """Return the bits of `low-high/step`; a range that ends before it begins wraps around."""
    if low == high:  # one value, not the whole cycle
        return 1 << _fold(kind, low)
    low = _fold(kind, low)
    if low <= high:
        return _bits(kind, low, high, step)
    if kind is YEAR:
        raise FieldProblem("years do not wrap around", offset, f"write {high}-{low}")
    return _bits(kind, low, high + kind.size, step)


def _bits(kind: Kind, low: int, high: int, step: int) -> int:
    """Return the bits of every `step`-th value from `low` to `high`; values past the top wrap around."""
    if high <= kind.high and step == 1:
        return ((1 << (high - low + 1)) - 1) << low
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << (value if value <= kind.high else value - kind.size)
    return mask


def _fold(kind: Kind, value: int) -> int:
    """Return `value`, with Sunday as 7 folded onto 0."""
    return 0 if kind is WEEKDAY and value == kind.size else value


def _value(kind: Kind, text: str, offset: int) -> int:
    """Return the value that `text` names."""
    if text.isdigit() and len(text) <= 4:  # noqa: PLR2004 - no field needs more digits
        value = int(text)
        if kind.low <= value <= kind.high or (kind is WEEKDAY and value == kind.size):
            return value
    elif text in kind.names:
        return kind.low + kind.names.index(text)
    elif not text:
        raise FieldProblem("a value is missing", offset, f"write a number from {kind.low} to {kind.high}")
    raise FieldProblem(*_wrong_value(kind, text, offset))


def _wrong_value(kind: Kind, text: str, offset: int) -> tuple[str, int, str]:
    """Return what is wrong with `text`, where, and what to write instead."""
    shown = text[:12]
    names = f", or a name {kind.names[0]} to {kind.names[-1]}" if kind.names else ""
    values = f"write a number from {kind.low} to {kind.high}{names}"
    if text.isdigit():
        return f"{shown} is not between {kind.low} and {kind.high}", offset, values
    if known := _known_mistake(kind, text):
        return known[0], offset, known[1]
    similar = get_close_matches(shown, kind.names, 1) if kind.names else []
    if similar:
        return f"there is no {kind.name} {shown!r}", offset, f"write {similar[0]}"
    return f"{shown!r} is no {kind.name}", offset, values


def _known_mistake(kind: Kind, text: str) -> tuple[str, str] | None:
    """Return what is wrong and what to write, for what other crons accept."""
    if "TZ=" in text:
        return "an expression does not name its time zone", "leave it out and set the schedule's time zone"
    if text == "R" or "~" in text:
        return "random times are not repeatable", "write H: a fixed time drawn from the schedule's id"
    if kind is WEEKDAY and text == "L":
        return "L needs a day", "write 5L for the last Friday, or SAT for every Saturday"
    if kind is WEEKDAY and re.fullmatch("L[0-7]", text):
        return "L follows the day", f"write {text[1]}L"
    if kind is DAY and "W" in text:
        return f"{text[:12]} names no working day", "write 15W for the working day nearest the 15th, or LW"
    return None


def _step(kind: Kind, text: str, offset: int) -> int:
    """Return the step that `text` names."""
    if not text.isdigit() or len(text) > 4:  # noqa: PLR2004 - no field needs more digits
        raise FieldProblem(f"the step {text[:12]!r} is no number", offset, "write a whole number, as in */15")
    step = int(text)
    if step == 0:
        raise FieldProblem("a step of 0 never moves", offset, "write a step of 1 or more")
    if step > kind.size:
        every = {"second": "s", "minute": "m", "hour": "h", "day of month": "d"}.get(kind.name)
        instead = f"write @every {step}{every} for that period" if every else f"write at most /{kind.size}"
        raise FieldProblem(f"a step of {step} is longer than the {kind.name} field", offset, instead)
    return step


def _hashed(kind: Kind, base: str, offset: int, step: int, hash_id: str | None) -> int:
    """Return the bits of `H`, `H(a-b)` and both with a step (0: without one)."""
    found = HASHED.fullmatch(base)
    if found is None:
        raise FieldProblem(f"{base[:12]!r} is no hashed value", offset, "write H, H/15 or H(0-29)")
    if kind.hash_high is None:
        raise FieldProblem(
            f"a {kind.name} cannot be hashed", offset, "write the years, or leave the field out"
        )
    low, high = kind.low, kind.hash_high
    if found[1] is not None:
        low_text, dash, high_text = found[1].partition("-")
        low = _value(kind, low_text, offset + 2)
        high = _value(kind, high_text, offset + 3 + len(low_text)) if dash else low
        if low > high or high > kind.high:
            raise FieldProblem("a hashed range goes upwards", offset, "write the smaller value first")
    number = hash_number(hash_id or "", kind.name)
    if not step:
        return 1 << (low + number % (high - low + 1))
    if step > high - low + 1:
        raise FieldProblem(f"a step of {step} is longer than the range", offset, "write a smaller step")
    return _bits(kind, low + number % step, high, step)


def hash_number(hash_id: str, field: str) -> int:
    """Return 64 even, repeatable bits for one field of one schedule; fields are independent of each other."""
    return int.from_bytes(blake2b(f"{field}\0{hash_id}".encode(), digest_size=8).digest(), "big")


def _special(kind: Kind, item: str, offset: int) -> Special | None:
    """Return the day rule that `item` names, or None when it is an ordinary item."""
    if kind is DAY and "/" not in item:
        return _special_day(item, offset)
    if kind is WEEKDAY and len(item) > 1 and (item[-1] == "L" or "#" in item):
        return _special_weekday(kind, item, offset)
    return None


def _special_day(item: str, offset: int) -> Special | None:
    if item == "L":
        return Special("last")
    if item == "LW":
        return Special("last_workday")
    if found := BEFORE_LAST.fullmatch(item):
        before = int(found[1])
        if not 0 < before < DAY.high:
            raise FieldProblem(
                f"no month has a day {before} before its last", offset, "write L-1 to L-30, or L"
            )
        return Special("last", before)
    if found := NEAREST.fullmatch(item):
        return Special("nearest", _value(DAY, found[1], offset))
    return None


def _special_weekday(kind: Kind, item: str, offset: int) -> Special:
    if item[-1] == "L":
        return Special("last_dow", _fold(kind, _value(kind, item[:-1], offset)))
    day, _, nth = item.partition("#")
    if nth not in ("1", "2", "3", "4", "5"):
        raise FieldProblem(
            f"a month has no {nth[:12] or 'unnumbered'} such week",
            offset + len(day) + 1,
            "write #1 to #5, or 5L",
        )
    return Special("nth_dow", _fold(kind, _value(kind, day, offset)), int(nth))
