"""What a task declares about how its failures are handled."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cronq.retry.backoff import DEFAULT_WAIT, Wait
from cronq.retry.kinds import Kind
from cronq.timing.durations import duration

On = Kind | type[BaseException]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do after some sorts of failure: `@app.task(cronq_retry=[Policy(…), Policy(…)])`.

    The first that fits decides. on: kinds and exception classes; nothing: any failure. attempts: how many in
    all. max_age: no attempt starts later than this after the first one did ("6h", seconds, a timedelta).
    wait: `Exponential`, `Fixed`, `Linear`, or a function from the attempt's number to seconds.
    """

    attempts: int = 4
    on: On | Sequence[On] = ()
    max_age: str | float | timedelta | None = None
    wait: Wait = DEFAULT_WAIT

    def __post_init__(self) -> None:
        """Refuse what could not work when it is declared, not when something fails."""
        for each in self.sorts:
            if not isinstance(each, Kind) and not (
                isinstance(each, type) and issubclass(each, BaseException)
            ):
                raise TypeError(f"Policy(on=…) takes kinds and exception classes, not {each!r}")
        if self.attempts < 1:
            raise ValueError(f"Policy(attempts={self.attempts}): a job has at least one attempt")
        if not callable(self.wait):
            raise TypeError(
                f"Policy(wait=…) takes Exponential, Fixed, Linear or a function, not {self.wait!r}"
            )
        _ = self.max_age_s

    @property
    def sorts(self) -> tuple[On, ...]:
        """The kinds and classes that it is for; none: any."""
        return (
            tuple(self.on) if isinstance(self.on, Sequence) and not isinstance(self.on, Kind) else (self.on,)
        )

    @property
    def max_age_s(self) -> float | None:
        """The greatest age in seconds."""
        if isinstance(self.max_age, str):
            return duration(self.max_age, "max_age").total_seconds()
        if isinstance(self.max_age, timedelta):
            return self.max_age.total_seconds()
        return self.max_age

    def fits(self, kind: Kind, error: BaseException) -> bool:
        """Tell whether it is for this failure."""
        sorts = self.sorts
        return not sorts or any(
            kind is each if isinstance(each, Kind) else isinstance(error, each) for each in sorts
        )


def policies_of(declared: Any, task: str) -> tuple[Policy, ...]:  # noqa: ANN401 - what a user wrote
    """Return a task's `cronq_retry` as policies; raise `TypeError` that names the task."""
    if declared is None:
        return ()
    found = tuple(declared) if isinstance(declared, (list, tuple)) else (declared,)
    for each in found:
        if not isinstance(each, Policy):
            raise TypeError(f"task {task}: cronq_retry takes a Policy or a list of them, not {each!r}")
    return found


def policy_for(policies: Sequence[Policy], kind: Kind, error: BaseException) -> Policy | None:
    """Return the first of `policies` that is for this failure."""
    return next((policy for policy in policies if policy.fits(kind, error)), None)
