"""Which due jobs may go out now? The stage between the agenda and the publisher. Pure: SQL is its caller's.

A job that no limit counts for passes at once. The others wait in lines, one for each lane (task, queue,
tenant, priority, background or not), each at the one limit that stops it; they wait in SQL, and only the
heads of the lines are kept in memory. Counts err on the safe side: what ended may still count for a moment.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cronq.beat.buckets import Bucket
from cronq.beat.keys import Keys
from cronq.beat.lines import Line
from cronq.limits import BACKGROUND, Limit, Limits
from cronq.store.agenda import DueJob
from cronq.store.room import Going, Lane, lane_of

WINDOW: Final = 500
"""Jobs of one line that are kept in memory."""
WINDOWS: Final = 20_000
"""Jobs of all lines that are; then new ones wait in SQL alone."""
LINES: Final = 50_000
"""Lines to remember, also those that nobody waits in."""


class Admission:
    """Every limited job passes here on its way to the broker."""

    def __init__(self, queue_of: Callable[[str, str | None], str]) -> None:
        self._queue_of = queue_of
        self.reset(Limits(), 0.0)

    def reset(self, limits: Limits, now: float, recent: Callable[[Bucket], int] = lambda _bucket: 0) -> None:
        """Forget everything, and count by `limits` from now on.

        recent: how many starts of a rate-limited key there were within the bucket's `refill_s`.
        """
        self._limits = limits
        self.keys = Keys(limits, now, recent)
        self._lines: dict[Lane, Line | None] = {}
        self._going: dict[str, Line] = {}
        self._unclaimed: set[str] = set()
        self._known: set[str] = set()
        self._unmarked: dict[str, tuple[Line, str | None]] = {}
        self._hungry: dict[Lane, Line] = {}

    def __bool__(self) -> bool:
        """Tell whether any job may have to wait."""
        return bool(self._limits) or bool(self._lines)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._known or job_id in self._unmarked

    # -- in and out ----------------------------------------------------------------------------------------

    def sort(self, batch: Sequence[DueJob]) -> list[DueJob]:
        """Return those of `batch` that no limit counts for; the others get in line."""
        free = []
        for job in batch:
            line = self._line(lane_of(job))
            if line is None:
                free.append(job)
            elif job.id not in self:
                self.ended(job.id)  # it comes back: a retry, or a limit refused it when it was claimed
                self._append(line, job)
        return free

    def release(self, now: float, limit: int) -> list[DueJob]:
        """Return at most `limit` jobs that there is room for, in a fair order; from now they are going on."""
        self.keys.wake_by(now)
        out: list[DueJob] = []
        while self.keys.awake and len(out) < limit:
            self._drain(self.keys.next_awake(), now, out, limit)
        self.keys.note_waiting(now)
        return out

    @property
    def ready(self) -> bool:
        """Whether the next `release` may have something."""
        return bool(self.keys.awake)

    def give_back(self, jobs: Iterable[DueJob]) -> None:
        """Take back that `jobs` went out: the broker did not take them."""
        for job in jobs:
            line = self._line(lane_of(job))
            if line is not None:
                self.ended(job.id)
                for bucket in line.buckets:
                    bucket.tokens += 1.0

    def ended(self, job_id: str) -> None:
        """Note that a job is not going on any more."""
        line = self._going.pop(job_id, None)
        if line is None:
            return
        unclaimed = job_id in self._unclaimed
        self._unclaimed.discard(job_id)
        for bucket in line.buckets:
            bucket.leave(background=line.lane.background, unclaimed=unclaimed)
            self.keys.wake(bucket)

    # -- what SQL and the broker say -----------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether anybody waits, so that it is worth looking for room."""
        return bool(self._hungry) or self.keys.wanted

    def count_again(self, going: Iterable[Going], on_the_way: Iterable[str]) -> None:
        """Take in what is going on. on_the_way: sent so lately that SQL may not know."""
        still = [(i, self._going[i]) for i in on_the_way if i in self._going]
        self._going.clear()
        self._unclaimed.clear()
        self.keys.uncount()
        for each in going:
            line = self._line(each.lane)
            if line is not None and line.counts:
                self._count(each.id, line, claimed=each.claimed)
        for job_id, line in still:
            if job_id not in self._going:
                self._count(job_id, line, claimed=False)
        self.keys.wake_all()

    # -- what waits in SQL ---------------------------------------------------------------------------------

    def unmarked(self, limit: int) -> list[tuple[str, str]]:
        """Return (job id, key it waits for) of jobs whose rows do not say yet that they wait."""
        found = []
        for job_id, (line, _schedule) in self._unmarked.items():
            found.append((job_id, (line.at or self._first(line)).key))
            if len(found) == limit:
                break
        return found

    def marked(self, ids: Iterable[str]) -> None:
        """Note that the rows of `ids` say it."""
        for job_id in ids:
            self._unmarked.pop(job_id, None)

    def unmarked_schedules(self) -> set[str]:
        """Return the schedules of the jobs whose rows do not say it yet."""
        return {schedule for _line, schedule in self._unmarked.values() if schedule is not None}

    def hungry(self) -> list[Lane]:
        """Return the lanes whose next jobs have to be read, once nothing is unmarked."""
        return [] if self._unmarked else list(self._hungry)

    def fill(self, lane: Lane, jobs: Sequence[DueJob], *, all_read: bool) -> None:
        """Take in the next jobs of a lane, as SQL has them; all_read: none wait behind them."""
        line = self._hungry.pop(lane)
        line.window.extend(jobs)
        line.more = 0 if all_read else max(1, line.more - len(jobs))
        self._known.update(job.id for job in jobs)
        if jobs:
            self._wait_at(line, self._first(line))
        elif line.more:
            self._hungry[lane] = line

    def recount(self, waiting: Iterable[tuple[Lane, int]]) -> None:
        """Take in how many jobs of each lane wait, as SQL knows it; nothing may be unmarked."""
        counts = dict(waiting)
        for lane in counts:
            self._keep(lane)
        for lane, line in self._lines.items():
            if line is not None:
                line.more = max(0, counts.get(lane, 0) - len(line.window))
                if line.more and line.at is None and lane not in self._hungry:
                    self._wait_at(line, self._first(line))
        self._tidy()

    # -- inside --------------------------------------------------------------------------------------------

    def _line(self, lane: Lane) -> Line | None:
        """Return the line of `lane`, or None: no limit counts for it."""
        try:
            return self._lines[lane]
        except KeyError:
            # Jobs with needs are in no queue yet: their place has a room of its own.
            queue = self._queue_of(lane.task, lane.queue) if lane.needs is None else None
            found = self._limits.of(lane.tenant, lane.task, queue)
            wanted = found or lane.needs is not None
            line = self._lines[lane] = self._new(lane, found) if wanted else None
            return line

    def _keep(self, lane: Lane) -> None:
        """Have a line for `lane` even if no limit counts for it any more."""
        if self._line(lane) is None:
            self._lines[lane] = self._new(lane, [])

    def _new(self, lane: Lane, found: list[tuple[str, Limit]]) -> Line:
        tier, weight = self._limits.tier_of(lane.tenant)
        buckets = tuple(self.keys.bucket(key, limit) for key, limit in found)
        place = None if lane.needs is None else self.keys.place(lane.needs)
        # The place last: what waits for it has all else.
        buckets += () if place is None else (place,)
        return Line(lane, buckets, BACKGROUND if lane.background else tier, weight, place=place)

    def _append(self, line: Line, job: DueJob) -> None:
        self._unmarked[job.id] = line, job.schedule_id
        if line.more or len(line.window) >= WINDOW or len(self._known) >= WINDOWS:
            line.more += 1
        else:
            line.window.append(job)
            self._known.add(job.id)
        if line.at is None and line.lane not in self._hungry:
            self._wait_at(line, self._first(line))

    def _wait_at(self, line: Line, bucket: Bucket) -> None:
        line.at = bucket
        bucket.turns.push(line)
        self.keys.wake(bucket)

    def _first(self, line: Line) -> Bucket:
        return line.buckets[0] if line.buckets else self.keys.open

    def _drain(self, bucket: Bucket, now: float, out: list[DueJob], limit: int) -> None:
        """Let out whom `bucket` has room for, or send them to wait where they are stopped."""
        while bucket.turns and len(out) < limit and not bucket.stops(now, background=False):
            line = bucket.turns.pop()
            line.at = None
            stopper = self._stopper(line, now)
            if stopper is not None:
                line.at = stopper
                stopper.turns.push(line)
                self.keys.set_alarm(stopper, now)
                if stopper is bucket:
                    # Background work that has its half. If anybody else waited here, it would be their turn.
                    return
            elif line.window:
                out.append(self._let_out(line, now))
                bucket.turns.charge(line)
                if line.window or line.more:
                    line.at = bucket
                    bucket.turns.push(line)
            elif line.more:
                self._hungry[line.lane] = line
        if len(out) >= limit:
            self.keys.wake(bucket)
        self.keys.set_alarm(bucket, now)

    def _stopper(self, line: Line, now: float) -> Bucket | None:
        for bucket in line.buckets:
            if bucket.stops(now, background=line.lane.background):
                return bucket
        return None

    def _let_out(self, line: Line, now: float) -> DueJob:
        job = line.window.popleft()
        self._known.discard(job.id)
        self._unmarked.pop(job.id, None)
        if line.place is not None:
            queue = line.place.send(now, background=line.lane.background)
            if queue != job.queue:
                job.queue, job.message = queue, None  # what was written ahead is for the other place
        for bucket in line.buckets:
            bucket.take(now, background=line.lane.background)
        if line.counts:
            self._going[job.id] = line
            self._unclaimed.add(job.id)
        return job

    def _count(self, job_id: str, line: Line, *, claimed: bool) -> None:
        self._going[job_id] = line
        for bucket in line.buckets:
            bucket.enter(background=line.lane.background, unclaimed=not claimed)
        if not claimed:
            self._unclaimed.add(job_id)

    def _tidy(self) -> None:
        """Forget lines and keys that nobody waits in, when there are too many."""
        if len(self._lines) <= LINES:
            return
        used = set(map(id, self._going.values()))
        self._lines = {
            lane: line
            for lane, line in self._lines.items()
            if line is not None
            and (line.at is not None or line.window or line.more or lane in self._hungry or id(line) in used)
        }
        self.keys.keep(
            {bucket.key for line in self._lines.values() if line is not None for bucket in line.buckets}
        )
