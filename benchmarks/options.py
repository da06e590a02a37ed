"""What one measurement was asked for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How much is measured, on what, and how often."""

    n: int
    broker: str = "redis"
    database: str = "sqlite"
    reps: int = 3
    redbeat: bool = True
    seconds: float = 60.0
    timers: bool = False
    pool: str = "prefork"
    concurrency: int = 2
    prefetch: int = 4
    events: bool = False
