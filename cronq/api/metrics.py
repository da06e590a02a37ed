"""`/metrics` for Prometheus: derived from SQL, so that nothing is lost with a worker.

Counters and histograms begin with this process and lag by as long as a commit may be late. Each API process
counts everything: look at one of them, or at their maximum, never at their sum.
"""

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from cronq.api.reply import parts_of
from cronq.app import Cronq
from cronq.job import State, Trigger
from cronq.queues import unserved_fields, wanted_by_queue
from cronq.store import overview
from cronq.store.changes import OVERLAP_S, attempts_between, ended_between
from cronq.views import leader_fields, limit_fields

SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
SOON: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600)
FIRE_TIMES: Final = (Trigger.SCHEDULE, Trigger.CATCH_UP)
LAG: Final = timedelta(seconds=OVERLAP_S)

router = APIRouter()


@router.get("/metrics", tags=["health"], responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    parts, state = parts_of(request), request.app.state
    if not hasattr(state, "metrics"):
        state.metrics = Metrics(parts.database.clock() - LAG)
    return Response(state.metrics.scrape(parts), media_type=CONTENT_TYPE_LATEST)


class Metrics:
    """The metrics of one API process."""

    def __init__(self, since: datetime) -> None:
        self._since, self._lock = since, threading.Lock()
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"cronq_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"cronq_{name}_seconds", text, labels, buckets=buckets, registry=registry)

        self._ended = counter("jobs_ended", "Jobs that came to an end", "task", "outcome")
        self._skipped = counter("fires_skipped", "Fire times that did not become a job", "reason")
        self._fires = counter("fires", "Fire times, by what became of them", "disposition")
        self._retries = counter("retries", "Attempts that another one follows", "reason")
        self._attempts = counter("attempts", "Finished attempts", "outcome", "kind")
        due, took = "From the due time of a scheduled job", "From the last attempt's start to the job's end"
        self._publish = histogram("publish_lateness", f"{due} to the broker's confirmation", buckets=SOON)
        self._start = histogram("start_lateness", f"{due} to its first attempt's start", buckets=SOON)
        gap = "How far the time between two starts of a schedule is from that between their due times"
        self._drift = histogram("start_drift", gap, buckets=SOON)
        self._late: dict[str, float] = {}  # by schedule: how late its last job started, in seconds
        self._duration = histogram("job_duration", took, "task", buckets=SECONDS)

    def scrape(self, parts: Cronq) -> bytes:
        """Count what ended since the last time, look at how things stand, and return the text."""
        with self._lock:
            until = parts.database.clock() - LAG
            if until > self._since:
                ended = ended_between(parts.database, self._since, until)
                attempts = attempts_between(parts.database, self._since, until)
                self._since = until
                self._count(ended, attempts)
            return generate_latest(self.registry) + generate_latest(standing(parts))

    def _count(self, ended: Iterable[Any], attempts: Iterable[Any]) -> None:
        for row in sorted(ended, key=lambda row: row.due_at):
            if row.trigger in FIRE_TIMES:
                self._fires.labels("skipped" if row.state == State.SKIPPED else "job").inc()
            if row.state == State.SKIPPED:
                self._skipped.labels(row.reason or "").inc()
                continue
            self._ended.labels(row.task, row.state).inc()
            if row.started_at is not None:
                self._duration.labels(row.task).observe((row.finished_at - row.started_at).total_seconds())
            if row.trigger == "schedule" and row.attempts == 1 and row.started_at is not None:
                late = (row.started_at - row.due_at).total_seconds()
                self._start.observe(max(0.0, late))
                if row.schedule_id in self._late:
                    self._drift.observe(abs(late - self._late[row.schedule_id]))
                self._late[row.schedule_id] = late
                if row.published_at is not None:
                    self._publish.observe(max(0.0, (row.published_at - row.due_at).total_seconds()))
        for row in attempts:
            self._attempts.labels(row.outcome, row.kind or "").inc()
            if row.retried:
                self._retries.labels(row.kind or "").inc()


def standing(parts: Cronq) -> CollectorRegistry:
    """Return gauges of how things stand now; what is gone leaves no stale series behind."""
    registry, database = CollectorRegistry(), parts.database

    def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(f"cronq_{name}", text, labels, registry=registry)

    jobs = gauge("jobs", "Unfinished jobs by state", ("state",))
    for state, count in overview.count_unfinished(database).items():
        jobs.labels(state).set(count)
    pending = gauge("queue_pending", "Published jobs that no worker has claimed", ("queue", "task"))
    for queue in overview.queues(database):
        pending.labels(queue.queue or "", queue.task).set(queue.pending)
    unserved = gauge("unserved_jobs", "Due jobs that no live worker can take", ("queue",))
    for facts in unserved_fields(parts) or ():
        unserved.labels(facts["needs"] or facts["queue"] or "").inc(facts["jobs"])
    wanted = gauge(
        "wanted_slots", "Jobs at a time that keep up with a queue and work off what waits", ("queue",)
    )
    for name, slots in wanted_by_queue(parts).items():
        wanted.labels(name).set(slots)
    gauge("dead_letters", "Dead letters").set(overview.count_dead(database))
    _limits(gauge, limit_fields(parts))
    schedules = gauge("schedules", "Schedules; paused and faulty ones are part of the total", ("state",))
    for state, count in overview.count_schedules(database).items():
        schedules.labels(state).set(count)
    gauge("overdue_jobs", "Jobs past their due time that are not published").set(
        len(overview.overdue_jobs(database, 1000))
    )
    gauge("overdue_schedules", "Schedules whose fire time passed unplanned").set(
        len(overview.overdue_schedules(database, 1000))
    )
    _running(gauge, parts)
    _beats(gauge, leader_fields(parts))
    return registry


def _running(gauge: Any, parts: Cronq) -> None:  # noqa: ANN401 - the factory above
    longest = gauge("longest_running_seconds", "How long the job that runs longest has been running")
    for row in overview.running_jobs(parts.database, 1):
        longest.set((parts.database.clock() - row["started_at"]).total_seconds())


def _limits(gauge: Any, limits: list[dict[str, Any]]) -> None:  # noqa: ANN401 - the factory above
    roomless = gauge("waiting_for_room", "Due jobs that wait for room under a limit", ("limit",))
    broken = gauge("dependency_broken", "1 while no job, or only a few, go to a failing dependency", ("key",))
    for limit in limits:
        roomless.labels(limit["key"]).set(limit["waiting"])
        if "breaker" in limit:
            broken.labels(limit["key"]).set(limit["breaker"]["room"] is not None)


def _beats(gauge: Any, facts: dict[str, Any]) -> None:  # noqa: ANN401 - the factory above
    gauge("leader", "1 while a beat leads").set(facts["holder"] is not None)
    gauge("leader_term", "The leader's term; each change of leader adds one").set(facts["term"] or 0)
    offset = gauge("beat_clock_offset_seconds", "How far a beat's wall clock is off", ("beat",))
    for beat in facts["beats"]:
        offset.labels(beat["holder"]).set(beat["clock_offset_s"])
