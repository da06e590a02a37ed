"""What does this leader publish next? The jobs that are planned ahead, in memory, earliest first."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from cronq.store.agenda import DueJob


class _ByInstant:
    """Job ids by instant, earliest first. Those of one instant cost next to nothing to add and to take."""

    def __init__(self) -> None:
        self._instants: list[datetime] = []
        self._ids: dict[datetime, deque[str]] = {}

    def add(self, instant: datetime, job_id: str) -> None:
        ids = self._ids.get(instant)
        if ids is None:
            ids = self._ids[instant] = deque()
            heapq.heappush(self._instants, instant)
        ids.append(job_id)

    def first(self) -> tuple[datetime, deque[str]] | None:
        """Return the earliest instant, and its ids to take from; None: there is nothing."""
        while self._instants:
            instant = self._instants[0]
            if self._ids[instant]:
                return instant, self._ids[instant]
            del self._ids[heapq.heappop(self._instants)]
        return None

    def at(self, instant: datetime) -> Iterable[str]:
        """Return the ids of one instant."""
        return self._ids[instant]

    def clear(self) -> None:
        self._instants.clear()
        self._ids.clear()


class Agenda:
    """Due jobs by due time. SQL has them all: losing the agenda loses nothing."""

    def __init__(self) -> None:
        self._due = _ByInstant()
        self._to_render = _ByInstant()
        self._jobs: dict[str, DueJob] = {}

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
            self._due.add(job.due_at, job.id)
            if job.message is None:
                self._to_render.add(job.due_at, job.id)

    def drop_schedule(self, schedule_id: str) -> None:
        """Forget the jobs of one schedule: it was edited, and SQL says what is due now."""
        for job_id in [i for i, job in self._jobs.items() if job.schedule_id == schedule_id]:
            del self._jobs[job_id]

    def clear(self) -> None:
        """Forget everything: another beat leads."""
        self._due.clear()
        self._to_render.clear()
        self._jobs.clear()

    def next_due(self) -> datetime | None:
        """Return when the earliest job is due, or None."""
        while (first := self._due.first()) is not None:
            instant, ids = first
            while ids:
                job = self._jobs.get(ids[0])
                if job is not None and job.due_at == instant:
                    return instant
                ids.popleft()
        return None

    def next_jobs(self, limit: int) -> list[DueJob]:
        """Return at most `limit` of the jobs that are due at the earliest instant; they stay."""
        due = self.next_due()
        if due is None:
            return []
        found = (self._jobs.get(job_id) for job_id in islice(self._due.at(due), limit))
        return [job for job in found if job is not None and job.due_at == due]

    def pop_due(self, now: datetime, limit: int) -> list[DueJob]:
        """Remove and return at most `limit` jobs that are due, earliest first."""
        due: list[DueJob] = []
        while len(due) < limit and (first := self._due.first()) is not None and first[0] <= now:
            instant, ids = first
            while ids and len(due) < limit:
                job_id = ids.popleft()
                job = self._jobs.get(job_id)
                # It was dropped, or moved to another instant and stands there too.
                if job is not None and job.due_at == instant:
                    del self._jobs[job_id]
                    due.append(job)
        return due

    def pop_unrendered(self, limit: int) -> list[DueJob]:
        """Return at most `limit` jobs whose message is not written yet, earliest first, each only once."""
        found: list[DueJob] = []
        while len(found) < limit and (first := self._to_render.first()) is not None:
            _instant, ids = first
            while ids and len(found) < limit:
                job = self._jobs.get(ids.popleft())
                if job is not None and job.message is None:
                    found.append(job)
        return found
