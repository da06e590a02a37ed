"""Everything the checker reads: what was expected, what was done, what was recorded, what was broken.

Instants are seconds of the machine's monotonic clock.
"""

from dataclasses import dataclass, field

from tests.faults.bench.journal import Line


@dataclass(frozen=True, slots=True)
class Expected:
    """One fire time that has to get its disposition."""

    schedule: str
    fire_ms: int
    at: float
    overlap: str
    catch_up: str
    fails_first: bool = False


@dataclass(frozen=True, slots=True)
class Demanded:
    """One job that the injector asked for."""

    job: str
    at: float
    poison: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the job table."""

    job: str
    schedule: str | None
    fire_ms: int | None
    state: str
    reason: str | None
    into_ms: int | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One row of the attempt table."""

    job: str
    number: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the injector did."""

    kind: str
    start: float
    end: float  #: when its cause was gone
    recover_s: float = 15.0  #: how long after that something may still be late
    hurt: frozenset[str] = frozenset()  #: processes that may have lost what they were running
    deadly: bool = False  #: the hurt ones were killed
    handover: bool = False  #: the leader was taken away: how long until the next one fires?
    held_write_lock: bool = False  #: SQLite's; who holds it frozen stops everybody, as is documented
    failpoint: str | None = None

    @property
    def until(self) -> float:
        """When its effects have to be over."""
        return self.end + self.recover_s


@dataclass(slots=True)
class History:
    """One run of one installation."""

    lock_s: float
    lease_s: float
    expected: list[Expected]
    demanded: list[Demanded]
    lines: list[Line]
    rows: list[Row]
    attempts: list[AttemptRow]
    faults: list[Fault]
    ended: list[str] = field(default_factory=list)  #: processes that ended although nobody killed them
