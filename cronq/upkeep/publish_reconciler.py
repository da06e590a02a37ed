"""Finds jobs that should be on the broker and are not, and has them sent again.

A worker that dies between taking a message and noting so, and a Redis that was emptied, lose messages. The
job's row says that the message went out and that nobody claimed the job; the queue's length says whether the
message may still be waiting.
"""

from collections import Counter

from cronq.delivery.failure import PublishFailed
from cronq.delivery.publisher import Publisher
from cronq.settings import Settings
from cronq.store.agenda import DueJob, mark_published
from cronq.store.database import Database
from cronq.store.terms import Term
from cronq.store.unclaimed import count_on_broker, unclaimed_jobs
from cronq.telemetry.log import get_logger

BATCH = 500

log = get_logger(__name__)


class PublishReconciler:
    """Sends again no more than what is missing from a queue: one that is merely slow stays as it is."""

    def __init__(self, database: Database, settings: Settings, publisher: Publisher) -> None:
        self._database, self._publisher = database, publisher
        self._after_s = settings.republish_s

    def run(self, _term: Term) -> None:
        """Look once."""
        overdue = unclaimed_jobs(self._database, after_s=self._after_s, limit=BATCH)
        if not overdue:
            return
        outages: tuple[type[BaseException], ...] = (PublishFailed, *self._publisher.outages)
        try:
            lost = self._missing(overdue)
            if not lost:
                return
            confirmed = set(self._publisher.publish(lost))
        except outages as error:
            log.warning_once(
                "publish.failed", error=str(error), consequence="it is tried again in a few seconds"
            )
            return
        mark_published(self._database, [job for job in lost if job.id in confirmed])
        log.warning(
            "publish.repeated", jobs=len(confirmed), consequence="copies are refused when they are claimed"
        )

    def _missing(self, overdue: list[DueJob]) -> list[DueJob]:
        """Return the oldest overdue jobs of each queue, as many as its length cannot account for."""
        room: Counter[str] = Counter()
        for (task, queue), count in count_on_broker(self._database).items():
            room[self._publisher.queue_of(task, queue)] += count
        for queue in {self._publisher.queue_of(job.task, job.queue) for job in overdue}:
            room[queue] -= self._publisher.depth(queue)
        lost = []
        for job in overdue:
            queue = self._publisher.queue_of(job.task, job.queue)
            if room[queue] > 0:
                room[queue] -= 1
                lost.append(job)
        return lost
