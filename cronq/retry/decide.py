"""Decides whether there is another attempt, and when."""

from dataclasses import dataclass
from typing import Final

from cronq.retry.backoff import DEFAULT_WAIT, Wait
from cronq.retry.kinds import FINAL, Kind

LONGEST_WAIT_S: Final = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a failed attempt."""

    retry_in_s: float | None  #: None: no further attempt
    why: str


def decide(
    kind: Kind,
    *,
    attempt: int,
    max_attempts: int,
    wait: Wait = DEFAULT_WAIT,
    asked_wait_s: float | None = None,
    least_wait_s: float = 0.0,
    age_s: float = 0.0,
    max_age_s: float | None = None,
) -> Decision:
    """Decide after attempt number `attempt` failed.

    asked_wait_s: what the task itself asked for, instead of `wait`. least_wait_s: what the other side asked
    for. age_s: seconds since the first attempt began.
    """
    if kind in FINAL:
        return Decision(None, f"not tried again: another attempt cannot help ({kind})")
    if attempt >= max_attempts:
        of = f"attempt {attempt} of {max_attempts}" if max_attempts > 1 else "the only attempt"
        return Decision(None, f"not tried again: {of} failed ({kind})")
    wanted = wait(attempt) if asked_wait_s is None else asked_wait_s
    seconds = min(max(0.0, least_wait_s, wanted), LONGEST_WAIT_S)
    if max_age_s is not None and age_s + seconds > max_age_s:
        return Decision(
            None,
            f"not tried again: attempt {attempt} of {max_attempts} failed ({kind}), and the next would begin "
            f"{age_s + seconds:.0f} s after the first one, over the limit of {max_age_s:g} s",
        )
    return Decision(seconds, f"attempt {attempt} of {max_attempts} failed ({kind})")
