"""What does this leader publish next? The jobs that are planned ahead, in memory, earliest first."""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime

from cronq.store.agenda import DueJob


class Agenda:
    """A heap of due jobs by due time. SQL has them all: losing the agenda loses nothing."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, str]] = []
        self._to_render: list[tuple[datetime, int, str]] = []
        self._jobs: dict[str, DueJob] = {}
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def add(self, jobs: Iterable[DueJob]) -> None:
        """Take jobs up; one that is there already is replaced."""
        for job in jobs:
            self._jobs[job.id] = job
            entry = (job.due_at, next(self._order), job.id)
            heapq.heappush(self._heap, entry)
            heapq.heappush(self._to_render, entry)

    def drop_schedule(self, schedule_id: str) -> None:
        """Forget the jobs of one schedule: it was edited, and SQL says what is due now."""
        for job_id in [i for i, job in self._jobs.items() if job.schedule_id == schedule_id]:
            del self._jobs[job_id]

    def clear(self) -> None:
        """Forget everything: another beat leads."""
        self._heap.clear()
        self._to_render.clear()
        self._jobs.clear()

    def next_due(self) -> datetime | None:
        """Return when the earliest job is due, or None."""
        while self._heap:
            due_at, _order, job_id = self._heap[0]
            job = self._jobs.get(job_id)
            if job is not None and job.due_at == due_at:
                return due_at
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: datetime, limit: int) -> list[DueJob]:
        """Remove and return at most `limit` jobs that are due, earliest first."""
        due: list[DueJob] = []
        while len(due) < limit:
            earliest = self.next_due()
            if earliest is None or earliest > now:
                break
            due.append(self._jobs.pop(heapq.heappop(self._heap)[2]))
        return due

    def pop_unrendered(self, limit: int) -> list[DueJob]:
        """Return at most `limit` jobs whose message is not written yet, earliest first, each only once."""
        found: list[DueJob] = []
        while self._to_render and len(found) < limit:
            job = self._jobs.get(heapq.heappop(self._to_render)[2])
            if job is not None and job.message is None:
                found.append(job)
        return found
