"""Whether a due job may go out although an earlier job of its schedule is still going on."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cronq.job import State
from cronq.schedule import Overlap, Reason
from cronq.store.agenda import DueJob

DEFAULT_BUFFER: Final = 100
NO_BUFFERS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(slots=True)
class Verdict:
    """What becomes of a batch of due jobs."""

    go: list[DueJob] = field(default_factory=list)
    skipped: dict[Reason, list[str]] = field(default_factory=dict)
    stop_previous: dict[str, Overlap] = field(default_factory=dict)  #: schedule id → cancel or terminate

    def skip(self, job: DueJob, reason: Reason) -> None:
        """Note that `job` does not run."""
        self.skipped.setdefault(reason, []).append(job.id)


class OverlapGate:
    """Knows which schedules are busy, and holds back the jobs that wait for their turn.

    `busy` errs on the safe side: a schedule in it may have finished meanwhile, one outside it has nothing
    going on, because only this leader publishes.
    """

    def __init__(self) -> None:
        self._busy: set[str] = set()
        self._held: dict[str, deque[DueJob]] = {}

    def reset(self, busy: Iterable[str]) -> None:
        """Start a term with what SQL says is going on."""
        self._busy = set(busy)
        self._held.clear()

    def doubtful(self, batch: Iterable[DueJob]) -> list[str]:
        """Return the schedules of `batch` that have to be looked up before `decide`."""
        return list(
            {job.schedule_id for job in batch if job.schedule_id in self._busy and _gated(job)} - {None}
        )

    def refresh(self, asked: Iterable[str], still_busy: set[str]) -> None:
        """Take in that of the schedules `asked` only `still_busy` have a job going on."""
        self._busy.difference_update(set(asked) - still_busy)

    def __contains__(self, schedule_id: str) -> bool:
        return schedule_id in self._busy

    def decide(self, batch: Sequence[DueJob], buffers: Mapping[str, int] = NO_BUFFERS) -> Verdict:
        """Sort a batch, in order, into those that go out now, those that wait and those that are skipped.

        buffers: how many jobs of a schedule may wait, by schedule id.
        """
        verdict = Verdict()
        for job in batch:
            if not _gated(job):
                verdict.go.append(job)
            elif job.schedule_id not in self._busy:
                verdict.go.append(job)
                self._busy.add(str(job.schedule_id))
            else:
                self._hold_or_skip(job, verdict, buffers.get(str(job.schedule_id), DEFAULT_BUFFER))
        return verdict

    def waiting(self) -> list[str]:
        """Return the schedules that have a job held back."""
        return list(self._held)

    def release(self) -> list[DueJob]:
        """Return the next held job of every schedule that is no longer busy."""
        free = [schedule_id for schedule_id in self._held if schedule_id not in self._busy]
        released = []
        for schedule_id in free:
            queue = self._held[schedule_id]
            released.append(queue.popleft())
            if not queue:
                del self._held[schedule_id]
        return released

    def holds(self) -> set[str]:
        """Return the ids of the jobs that are held back."""
        return {job.id for queue in self._held.values() for job in queue}

    def drop_schedule(self, schedule_id: str) -> None:
        """Forget the held jobs of a schedule that was edited."""
        self._held.pop(schedule_id, None)

    def _hold_or_skip(self, job: DueJob, verdict: Verdict, buffer: int) -> None:
        schedule_id = str(job.schedule_id)
        if job.overlap is Overlap.SKIP:
            verdict.skip(job, Reason.OVERLAP)
            return
        room = buffer if job.overlap is Overlap.QUEUE else 1
        queue = self._held.setdefault(schedule_id, deque())
        if job.overlap in (Overlap.CANCEL_PREVIOUS, Overlap.TERMINATE_PREVIOUS):
            # Only the newest is worth starting once the previous one has stopped.
            while queue:
                verdict.skip(queue.popleft(), Reason.OVERLAP)
            verdict.stop_previous[schedule_id] = job.overlap
        if len(queue) >= room:
            verdict.skip(job, Reason.BUFFER_FULL)
        else:
            queue.append(job)


def _gated(job: DueJob) -> bool:
    # A retry belongs to the job that is going on: it never waits for itself.
    return job.exclusive and job.state is not State.RETRYING
