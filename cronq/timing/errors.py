"""Every refusal of a timing names the field, the position and what to write instead."""

from cronq.errors import CronqError


class InvalidTiming(CronqError, ValueError):
    """A timing that cannot be understood, or that could never fire, was refused when it was declared.

    `field` is the part that is wrong ("minute", "tz", "period", …), `position` counts characters of `text`
    from 1 (None when the whole of it is wrong), and `suggestion` says what to write instead.
    """

    def __init__(
        self, problem: str, *, field: str, suggestion: str, text: str = "", position: int | None = None
    ) -> None:
        self.problem, self.field, self.suggestion = problem, field, suggestion
        self.text, self.position = text, position
        shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
        where = f" in {shown!r}" if text else ""
        if position is not None:
            where += f" at character {position}"
        super().__init__(f"{field}{where}: {problem}; {suggestion}")


MAX_SHOWN = 80
"""How many characters of a refused text its message repeats."""
