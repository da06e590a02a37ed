"""Who waits together? The jobs that the same limits count for. Pure."""

from collections import deque
from dataclasses import dataclass, field

from cronq.beat.buckets import Bucket
from cronq.beat.places import Place
from cronq.store.agenda import DueJob
from cronq.store.room import Lane


@dataclass(slots=True, eq=False)
class Line:
    """The jobs of one lane that wait."""

    lane: Lane
    buckets: tuple[Bucket, ...]
    tier: str
    weight: int
    window: deque[DueJob] = field(default_factory=deque)
    more: int = 0  #: behind those of `window`, in SQL
    at: Bucket | None = None  #: where it waits; None: nobody waits, or the next ones have to be read
    place: Place | None = None  #: of jobs with needs: which of their queues has room; one of `buckets`

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.lane.tenant or ""

    @property
    def urgency(self) -> tuple[int, float]:
        """By priority, then by who is due first."""
        due = self.window[0].due_at.timestamp() if self.window else 0.0
        return -(self.lane.priority or 0), due

    @property
    def counts(self) -> bool:
        """Whether it matters which of its jobs are going on."""
        return any(bucket.limit.counts_jobs for bucket in self.buckets)
