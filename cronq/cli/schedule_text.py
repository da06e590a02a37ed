"""How the command line writes a schedule down: its timing in a word or two, its policies in lines."""

import json
from collections.abc import Iterator

from cronq.cli.common import short_time
from cronq.schedule import Overlap, Schedule
from cronq.store.schedules import StoredSchedule
from cronq.timing import At, Cron, Delay, Every, RRule, Timing
from cronq.timing.base import iso
from cronq.timing.bounds import Bounded, Union
from cronq.timing.durations import in_words
from cronq.timing.exclusions import Excluding
from cronq.views import schedule_fields

LONGEST = 500
PLAIN = ("queue", "needs", "priority", "max_attempts", "pause_after", "tenant", "callback_url", "on_complete")


def timing_text(timing: Timing) -> str:  # noqa: PLR0911 - each kind of timing has its own words
    """Return `timing` as it stands in a table."""
    match timing:
        case Cron():
            texts = [timing.expression] if isinstance(timing.expression, str) else timing.expression
            return f"cron {' · '.join(texts)}, {timing.tz}"
        case Every():
            return f"every {in_words(timing.period)}"
        case Delay():
            return f"{in_words(timing.period)} after the last"
        case At():
            return f"at {iso(timing.instant)}"
        case RRule():
            return f"rrule {timing.text}, {timing.tz}"
        case Union():
            return " · ".join(map(timing_text, timing.of))
        case Bounded():
            return f"{timing_text(timing.of)}, within bounds"
        case Excluding():
            return f"{timing_text(timing.of)}, but not in {timing.calendar.name}"
        case _:
            return "cannot be read"


def coming(stored: StoredSchedule) -> str:
    """Return when a schedule fires next, as a clause."""
    if stored.next_fire_at is not None:
        return f"its next fire time is {short_time(stored.next_fire_at)}"
    if isinstance(stored.timing, Delay):
        return "it fires next after the end of its job"
    return "it has no fire time left"


def policy_lines(stored: StoredSchedule) -> Iterator[str]:
    """Yield a line for each thing that is declared of a schedule beside its timing; secrets stay hidden."""
    declared, shown = stored.definition, schedule_fields(stored)
    said: dict[str, str] = {name: _json(shown[name]) for name in ("args", "kwargs", "fan_out") if shown[name]}
    said |= {name: str(shown[name]) for name in PLAIN if shown[name] is not None}
    said["overlap"] = declared.overlap
    if declared.overlap is Overlap.QUEUE:
        said["overlap"] += f", at most {declared.buffer} wait"
    said["catch_up"] = f"{declared.catch_up}, of the last {in_words(declared.catch_up_window)}"
    said |= {name: in_words(span) for name in ("jitter", "spread") if (span := getattr(declared, name))}
    if declared.after is not None:
        said["after"] = _after(declared)
    for name, text in said.items():
        yield f"  {name.replace('_', '-'):14} {text}"


def _after(declared: Schedule) -> str:
    assert declared.after is not None
    names = ", ".join(declared.after.schedules)
    which = f"{declared.after.join} of " if len(declared.after.schedules) > 1 else ""
    return f"{which}{names}{', also if it failed' if declared.after.on_failure else ''}"


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… (all of it with --json)"
