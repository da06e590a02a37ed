"""A cron expression is parsed whole: 5 fields, 6 with seconds first, 7 with the year last, or a macro."""

import re
from datetime import timedelta
from typing import Literal, NamedTuple

from cronq.timing.days import DayRule, day_rule
from cronq.timing.durations import duration
from cronq.timing.errors import InvalidTiming
from cronq.timing.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    Field,
    FieldProblem,
    Kind,
    parse_field,
)

MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
    "@MINUTELY": "* * * * *",
}
KINDS: dict[int, tuple[Kind, ...]] = {
    5: (MINUTE, HOUR, DAY, MONTH, WEEKDAY),
    6: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY),
    7: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR),
}
AT_ZERO = Field(1)
LONGEST = 1024
WORD = re.compile(r"\S+")
EVERY_DAY = 0xFFFFFFFE
LONGEST_MONTH = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FIRST_YEAR, CYCLE_END = 2000, 2041
"""Every combination of month length and weekday that can come at all comes in these years (2000 to 2040)."""


class Expression(NamedTuple):
    """The parsed fields of one expression; `source` is its text after macros are replaced."""

    source: str
    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    year: Field | None
    both: bool  #: the caller asked for day-of-month AND day-of-week
    hashed: bool  #: some field holds an `H`

    @property
    def interval(self) -> bool:
        """Whether it is interval-like: a `*`, a range or a step in the second, minute or hour field."""
        return self.second.interval or self.minute.interval or self.hour.interval

    @property
    def days(self) -> DayRule:
        """The rule for its days."""
        return day_rule(self.day, self.month, self.weekday, self.year, self.both)


def parse_expression(text: str, day: Literal["or", "and"], hash_id: str | None) -> Expression | timedelta:
    """Parse `text`; `@every 90s` gives the period instead. Raises InvalidTiming."""
    if not isinstance(text, str) or not text.isascii() or len(text) > LONGEST:
        raise _unreadable(text)
    upper = text.upper()
    if "@" in upper:
        macro = upper.strip()
        if macro.startswith("@EVERY ") or macro == "@EVERY":
            return _every(text)
        if macro not in MACROS:
            raise _unknown_macro(text, macro)
        upper = MACROS[macro]
    words = upper.split()
    kinds = KINDS.get(len(words))
    if kinds is None:
        raise _wrong_count(text, words)
    fields: list[Field] = []
    for kind, word in zip(kinds, words, strict=True):
        try:
            fields.append(parse_field(kind, word, hash_id if "H" in word else None))
        except FieldProblem as wrong:
            raise _wrong_field(text, len(fields), kind, wrong) from None
    year = fields.pop() if len(kinds) == len(KINDS[7]) else None
    second = AT_ZERO if kinds is KINDS[5] else fields.pop(0)
    minute, hour, days, month, weekday = fields
    hashed = "H" in upper and any(each.hashed for each in (second, *fields))
    parsed = Expression(
        " ".join(words), second, minute, hour, days, month, weekday, year, day == "and", hashed
    )
    if parsed.day.mask != EVERY_DAY or year is not None or parsed.weekday.specials:
        _refuse_impossible(text, parsed)
    return parsed


def _every(text: str) -> timedelta:
    stripped = text.strip()
    lead = len(text) - len(text.lstrip()) + len("@every")
    rest = stripped[len("@every") :]
    gap = len(rest) - len(rest.lstrip())
    period = duration(rest.strip(), offset=lead + gap, whole=text)
    if period < timedelta(seconds=1) or period.microseconds:
        raise InvalidTiming(
            "@every counts whole seconds", field="period", text=text, position=lead + gap + 1,
            suggestion="write 1s or more, or declare an Every for shorter periods",
        )  # fmt: skip
    return period


def _unreadable(text: object) -> InvalidTiming:
    if not isinstance(text, str):
        return InvalidTiming("an expression is a text", field="expression", suggestion="write '0 2 * * *'")
    if len(text) > LONGEST:
        return InvalidTiming(
            f"an expression has at most {LONGEST} characters", field="expression", text=text,
            position=LONGEST + 1, suggestion="write several expressions",
        )  # fmt: skip
    at = next(i for i, character in enumerate(text) if not character.isascii())
    return InvalidTiming(
        f"{text[at]!r} means nothing in a cron expression", field="expression", text=text, position=at + 1,
        suggestion="write digits, names, * , - / ? L W # H",
    )  # fmt: skip


def _unknown_macro(text: str, macro: str) -> InvalidTiming:
    instead = f"write one of {', '.join(MACROS).lower()} or @every 90s"
    problem = "there is no such macro"
    if macro == "@REBOOT":
        problem = "@reboot has no meaning for a schedule that outlives every process"
        instead = "enqueue a job when your deployment starts"
    return InvalidTiming(
        problem, field="expression", text=text, position=text.find("@") + 1, suggestion=instead
    )


def _wrong_count(text: str, words: list[str]) -> InvalidTiming:
    suggestion = "write minute hour day month weekday; seconds go first, a year last"
    if words and words[0].startswith(("TZ=", "CRON_TZ=")):
        return InvalidTiming(
            "an expression does not name its time zone", field="expression", text=text,
            position=text.find(text.strip()) + 1, suggestion="leave it out and set the schedule's time zone",
        )  # fmt: skip
    position = None
    for found in list(WORD.finditer(text))[7:8]:
        position = found.start() + 1
    return InvalidTiming(
        f"an expression has 5, 6 or 7 fields, not {len(words)}", field="expression", text=text,
        position=position or len(text.rstrip()) + 1, suggestion=suggestion,
    )  # fmt: skip


def _wrong_field(text: str, index: int, kind: Kind, wrong: FieldProblem) -> InvalidTiming:
    start = [found.start() for found in WORD.finditer(text)][index]
    return InvalidTiming(
        wrong.problem,
        field=kind.name,
        text=text,
        position=start + wrong.offset + 1,
        suggestion=wrong.suggestion,
    )


def _refuse_impossible(text: str, parsed: Expression) -> None:
    """Refuse an expression whose days never come, such as 31 February."""
    rule = parsed.days
    if parsed.year is None and not parsed.day.specials and not parsed.weekday.specials and parsed.day.mask:
        lowest = (parsed.day.mask & -parsed.day.mask).bit_length() - 1
        either = not (parsed.both or parsed.day.star or parsed.weekday.star)
        if either or lowest <= max(LONGEST_MONTH[month] for month in rule.months):
            return
    elif parsed.year is not None:
        if rule.next_month(YEAR.low - 1, 12) is not None:
            return
    elif any(rule.days(year, month) for year in range(FIRST_YEAR, CYCLE_END) for month in rule.months):
        return
    with_seconds = len(parsed.source.split()) > len(KINDS[5])
    words = [found.start() for found in WORD.finditer(text)]
    position = words[3 if with_seconds else 2] + 1
    raise InvalidTiming(
        "this day never comes in these months and years", field=DAY.name, text=text, position=position,
        suggestion="write a day that the month has, or L for its last day",
    )  # fmt: skip
