"""What does cronq cost a worker? No-op jobs through cronq against the same messages through Celery alone.

Both sides read messages from the same publisher; plain ones lack cronq's header. A cronq job counts when its
outcome is committed: after each run every job has to be COMPLETED in the database.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
from celery import Celery

from benchmarks import timers
from benchmarks.cronq_store import count_by_state
from benchmarks.figures import Bar, combine, percentile, ratio, rounded
from benchmarks.noop import STARTS, TASK
from benchmarks.options import Options
from benchmarks.queues import Queue
from benchmarks.stage import QUEUE, Stage, load
from cronq.delivery.message import HEADER, Message, MessageBuilder
from cronq.delivery.publisher import Publisher, open_publisher
from cronq.job import Trigger, demanded_job_id
from cronq.store.agenda import DueJob, insert_jobs, mark_published
from tests.support.processes import Process

LIMIT_S = 180.0
START_SHARE, END_SHARE = 0.85, 0.05
"""The rate is taken between these shares of the queue: neither start-up nor the end count."""
BATCH = 1000
PROBES = 200
PROBE_GAP_S = 0.03
APPS = {"cronq": "cronq_app", "plain": "plain_app"}


def bars(options: Options) -> list[Bar]:
    """Return what the worker is measured against; RabbitMQ and the other pools are reported only."""
    if options.broker != "redis" or options.pool != "prefork":
        return []
    share = 0.85 if options.database == "sqlite" else 0.7
    return [Bar("ratio", share, at_least=True), Bar("latency_over_plain_s", 0.003)]


def run_worker(options: Options) -> dict[str, Any]:
    """Measure throughput and start latency, both sides in turn."""
    before = load()
    rates: dict[str, list[dict[str, Any]]] = {side: [] for side in APPS}
    latencies: dict[str, list[dict[str, Any]]] = {side: [] for side in APPS}
    taken: dict[str, Any] = {}
    with Stage(options.broker, options.database) as stage:
        for _ in range(options.reps):
            for side in APPS:
                rates[side].append(_throughput(stage, options, side))
                latencies[side].append(_latency(stage, options, side))
        if options.timers:
            _throughput(stage, options, "cronq", BENCH_TIMERS="1")
            taken = timers.read(stage.folder)
    ours, plain = (combine(rates[side]) | _named(combine(latencies[side])) for side in APPS)
    result = {
        "bench": "worker",
        "n": options.n,
        "broker": options.broker,
        "database": options.database,
        "pool": options.pool,
        "concurrency": options.concurrency,
        "prefetch": options.prefetch,
        "events": options.events,
        "reps": options.reps,
        **ours,
        "plain": plain,
        "ratio": ratio(ours["jobs_per_s"], plain["jobs_per_s"]),
        "cpu_ratio": ratio(plain["cpu_us_per_job"], ours["cpu_us_per_job"]),
        "ratio_of_each": [
            ratio(mine["jobs_per_s"], theirs["jobs_per_s"])
            for mine, theirs in zip(rates["cronq"], rates["plain"], strict=True)
        ],
        "us_per_job_over_plain": _extra_us(ours["jobs_per_s"], plain["jobs_per_s"], options),
        "latency_over_plain_s": rounded(ours["latency_p50_s"] - plain["latency_p50_s"], 5),
        "load_before": before,
        "load_after": load(),
        "timers": taken,
    }
    result["bars"] = [bar.judge(result.get(bar.figure)) for bar in bars(options)]
    return result


def _throughput(stage: Stage, options: Options, side: str, **env: str) -> dict[str, Any]:
    stage.empty()
    with _publisher(stage, side) as publisher:
        for count in _parts(options.n):
            _send(stage, publisher, [_job() for _ in range(count)], stored=side == "cronq")
    queue = stage.queue()
    with _worker(stage, options, side, **env) as worker:
        rate = _rate(queue, worker, options.n)
        settled_s = _wait_settled(stage, options.n) if side == "cronq" else 0.0
    queue.close()
    return {**rate, "settled_after_s": settled_s}


def _rate(queue: Queue, worker: Process, total: int) -> dict[str, float]:
    """Return jobs a second, and the processor time of a job, which a busy machine changes less."""
    start = _wait_left(queue, worker, START_SHARE * total)
    end = _wait_left(queue, worker, END_SHARE * total)
    done = start.left - end.left
    return {
        "jobs_per_s": round(done / (end.at - start.at), 1),
        "cpu_us_per_job": round(1e6 * (end.cpu_s - start.cpu_s) / done, 1),
    }


@dataclass(frozen=True, slots=True)
class _Mark:
    """How many messages were left, when, and what the worker's processes had used until then."""

    at: float
    left: int
    cpu_s: float


def _wait_left(queue: Queue, worker: Process, wanted: float) -> _Mark:
    deadline = time.monotonic() + LIMIT_S
    while (left := queue.length()) > wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{left} messages are left after {LIMIT_S:g} s:\n{worker.tail()}")
        time.sleep(0.02)
    at = time.monotonic()
    used = [each.cpu_times() for each in worker.tree()]
    return _Mark(at, left, sum(each.user + each.system for each in used))


def _wait_settled(stage: Stage, total: int) -> float:
    began = time.monotonic()
    while time.monotonic() < began + LIMIT_S:
        if count_by_state(stage.database).get("COMPLETED", 0) == total:
            return round(time.monotonic() - began, 2)
        time.sleep(0.1)
    raise TimeoutError(f"not every job was settled: {count_by_state(stage.database)}")


def _latency(stage: Stage, options: Options, side: str) -> dict[str, Any]:
    """Return how long it takes from the call that sends a written message to the body, worker idle."""
    stage.empty()
    notes = redis.Redis.from_url(stage.redis.url.rpartition("/")[0] + "/2", decode_responses=True)
    sent_at: dict[str, float] = {}
    with _publisher(stage, side) as publisher, _worker(stage, options, side):
        _send(stage, publisher, [_job(note=1)], stored=side == "cronq")
        _wait_for_notes(notes, 1)
        for number in range(PROBES + 20):
            probe = _job(note=1)
            at = _send(stage, publisher, [probe], stored=side == "cronq")
            if number >= 20:  # the first ones open connections
                sent_at[probe.id] = at
            time.sleep(PROBE_GAP_S)
        started = dict(each.split() for each in _wait_for_notes(notes, PROBES + 21))
    waits = [float(started[job_id]) - at for job_id, at in sent_at.items()]
    return {f"p{share}": rounded(percentile(waits, share / 100), 5) for share in (50, 99)}


def _wait_for_notes(notes: Any, count: int) -> list[str]:  # noqa: ANN401 - redis-py's own types lie
    deadline = time.monotonic() + 60
    while notes.llen(STARTS) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{notes.llen(STARTS)} of {count} bodies started")
        time.sleep(0.05)
    found: list[str] = notes.lrange(STARTS, 0, -1)
    return found


def _job(note: int = 0) -> DueJob:
    return DueJob(
        id=demanded_job_id(None),
        task=TASK,
        args=["tenant-0000001", note],
        kwargs={},
        due_at=datetime.now(UTC) - timedelta(seconds=1),
        trigger=Trigger.DEMAND,
        queue=QUEUE,
    )


def _send(stage: Stage, publisher: Publisher, jobs: list[DueJob], *, stored: bool) -> float:
    """Send `jobs`, rows first if they are cronq's; return when the written messages began to be sent."""
    if stored:
        with stage.database.begin() as connection:
            insert_jobs(stage.database, connection, jobs, datetime.now(UTC))
    for each in jobs:
        publisher.render(each)
    if stored:
        mark_published(stage.database, jobs)
    began = time.time()
    publisher.publish(jobs)
    return began


class _PlainMessages(MessageBuilder):
    """Writes the same messages without what makes them cronq's."""

    def build(self, due: DueJob) -> Message:
        message = super().build(due)
        del message.headers[HEADER]
        return message


@contextlib.contextmanager
def _publisher(stage: Stage, side: str) -> Iterator[Publisher]:
    app = Celery("bench", broker=stage.broker_url, set_as_current=False)
    app.conf.update(task_default_queue=QUEUE)
    publisher: Any = open_publisher(app, flower_names="task")
    if side == "plain":
        publisher._builder = _PlainMessages(app, flower_names="task")  # noqa: SLF001 - only the header differs
    yield publisher
    publisher.close()


@contextlib.contextmanager
def _worker(stage: Stage, options: Options, side: str, **env: str) -> Iterator[Process]:
    argv = ["-P", options.pool, "-c", str(options.concurrency)]
    argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    events = {"BENCH_EVENTS": "1"} if options.events else {}
    with stage.worker(APPS[side], *argv, BENCH_PREFETCH=str(options.prefetch), **events, **env) as worker:
        yield worker


def _parts(total: int) -> Iterator[int]:
    for start in range(0, total, BATCH):
        yield min(BATCH, total - start)


def _named(latency: dict[str, Any]) -> dict[str, Any]:
    return {
        "latency_p50_s": latency["p50"],
        "latency_p99_s": latency["p99"],
        "latency_ranges": latency["ranges"],
    }


def _extra_us(ours: float, plain: float, options: Options) -> float:
    """Return the microseconds that a job takes a worker process longer than a plain task does."""
    processes = options.concurrency if options.pool == "prefork" else 1
    return round(1e6 * processes * (1 / ours - 1 / plain), 1)
