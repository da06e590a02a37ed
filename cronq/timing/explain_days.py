"""The days of a cron expression in English, with the rule that joins its two day fields said aloud."""

from cronq.timing.expression import Expression
from cronq.timing.fields import DAY, MONTH, WEEKDAY, Field, Special
from cronq.timing.phrases import numbers, ordinal, runs, series, stepped

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
ORDINALS = tuple(ordinal(number) for number in range(32))


def days_phrase(parsed: Expression) -> str:
    """Return on which days, such as "on the 13th or on every Friday, in January and June"."""
    return _days(parsed) + _months(parsed) + _years(parsed)


def _days(parsed: Expression) -> str:
    every_day = not parsed.day.specials and parsed.day.mask.bit_count() == DAY.size
    every_weekday = not parsed.weekday.specials and parsed.weekday.mask.bit_count() == WEEKDAY.size
    either = not (parsed.both or parsed.day.star or parsed.weekday.star)
    if (every_day and every_weekday) or (either and (every_day or every_weekday)):
        return "every day"
    if every_day:
        return _weekdays(parsed.weekday)
    if every_weekday:
        return _month_days(parsed.day)
    if either:
        return f"{_month_days(parsed.day)} or {_weekdays(parsed.weekday)} (either is enough)"
    return f"{_month_days(parsed.day)}, but only {_weekdays(parsed.weekday)}"


def _weekdays(field: Field) -> str:
    said = []
    values = numbers(field.mask)
    if values and values[0] == 0:  # a week reads from Monday
        values = [*values[1:], 7]
    if values:
        named = runs(values, [*WEEKDAYS, WEEKDAYS[0]])
        single = len(values) == 1 or (len(named) == len(values))
        said.append(f"every {series(named)}" if single else series(named))
    said += [_special(each) for each in field.specials]
    return f"on {series(said)}"


def _month_days(field: Field) -> str:
    values = numbers(field.mask)
    said = []
    step = stepped(values)
    if step and len(values) > 4:  # noqa: PLR2004 - fewer are said one by one
        said.append(f"every {ordinal(step)} day of the month from the {ORDINALS[values[0]]}")
    elif values:
        said.append(f"the {series(runs(values, ORDINALS))}")
    said += [_special(each) for each in field.specials]
    return f"on {series(said)}"


def _special(rule: Special) -> str:
    match rule.rule:
        case "last" if rule.number:
            return f"the day {rule.number} before the month's last"
        case "last":
            return "the last day of the month"
        case "last_workday":
            return "the last Monday-to-Friday day of the month"
        case "nearest":
            return f"the Monday-to-Friday day nearest the {ordinal(rule.number)}"
        case "last_dow":
            return f"the last {WEEKDAYS[rule.number]} of the month"
        case _:
            return f"the {ordinal(rule.nth)} {WEEKDAYS[rule.number]} of the month"


def _months(parsed: Expression) -> str:
    values = numbers(parsed.month.mask)
    return "" if len(values) == MONTH.size else f", in {series(runs(values, MONTHS))}"


def _years(parsed: Expression) -> str:
    if parsed.year is None or parsed.year.star:
        return ""
    values = numbers(parsed.year.mask)
    return f", in {series(runs(values, [str(year) for year in range(values[-1] + 1)]))}"
