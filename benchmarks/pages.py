"""How long does each page take with a lot stored? `python -m benchmarks.pages`, see docs/benchmarks/pages.md.

PostgreSQL holds a million jobs of ten thousand schedules: a hundred fire times each, one in fifty
of them failed. The pages are asked for one after the other, as a person does.
"""

import argparse
import json
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import text

from benchmarks.cronq_store import seed
from benchmarks.stage import DurablePostgreSQL, load
from cronq.job import State
from cronq.schedule import Schedule
from cronq.store.database import Database
from cronq.store.jobs import JobFilter, list_jobs
from cronq.store.schema import upgrade
from tests.support.processes import Process, wait_for
from tests.support.server import free_port
from tests.support.servers import RedisServer

PAGES = {
    "Now": "/",
    "Schedules": "/schedules",
    "Schedules, found by text": "/schedules?q=report-77",
    "One schedule": "/schedules/report-00042",
    "One schedule, each minute": "/schedules/busy",
    "One schedule, why": "/schedules/report-00042?at={yesterday}",
    "Jobs": "/jobs",
    "Jobs, failed": "/jobs?state=FAILED",
    "Jobs of one schedule": "/jobs?schedule=report-00042",
    "Jobs of one tenant": "/jobs?tenant=t7",
    "Jobs of one task": "/jobs?task=task-7",
    "Jobs of a task that nowhere is": "/jobs?task=nowhere",
    "API: jobs of a task that nowhere is": "/api/jobs?type=nowhere",
    "Jobs, found by text": "/jobs?q=no+3",
    "Jobs, text that nowhere is": "/jobs?q=nowhere",
    "Retry all that fit?": "/jobs/all/retry?schedule=report-00042",
    "One job": "/jobs/{job}",
    "Dead letters": "/dead",
    "Dead letters of one task": "/dead?task=task-7",
    "Day": "/day",
}
BAR_MS = 300
BATCH = 100_000
BUSY = "busy"


def fill(database: Database, schedules: int, jobs: int) -> None:
    """Store `schedules` schedules and `jobs` jobs of theirs, as if they had run for a while."""
    timing = {"kind": "cron", "tz": "Europe/Berlin", "dst": "vixie"}
    declared = [
        Schedule(
            name=f"report-{n:05}",
            task=f"task-{n % 50}",
            timing={**timing, "expression": f"{n % 60} {n % 24} * * *"},
        )
        for n in range(schedules)
    ]
    seed(
        database,
        [*declared, Schedule(name=BUSY, task="task-busy", timing={**timing, "expression": "* * * * *"})],
    )
    of_busy = jobs // 20
    for begin in range(0, jobs - of_busy, BATCH):
        last = min(begin + BATCH, jobs - of_busy) - 1
        _insert(database, _DAILY, {"first": begin, "last": last, "n": schedules})
    for begin in range(0, of_busy, BATCH):
        _insert(database, _BUSY, {"first": begin, "last": min(begin + BATCH, of_busy) - 1})
    _insert(database, _ATTEMPTS, {})
    with database.autocommit() as connection:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("VACUUM ANALYZE"))


def _insert(database: Database, statement: str, values: dict[str, int]) -> None:
    with database.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(statement), values)


_JOBS = """
    INSERT INTO cronq_job (id, schedule_id, schedule_name, schedule_version, fire_time, trigger, task, args,
        kwargs, tenant, overlap, exclusive, state, reason, due_at, attempts, worker, error, dead_at,
        planned_at, published_at, started_at, finished_at, updated_at)
    SELECT gen_random_uuid()::varchar, id, name, 1, at, 'schedule', task, '[]', '{"to": "ann"}',
        't' || i % 100, 'skip', true, state, CASE state WHEN 'SKIPPED' THEN 'overlap' END, at, 1,
        'worker@host',
        CASE state WHEN 'FAILED' THEN 'Traceback:' || chr(10) || 'RuntimeError: no ' || i % 7 END,
        CASE state WHEN 'FAILED' THEN at + interval '2 s' END, at - interval '1 min',
        at + interval '5 ms', at + interval '9 ms', at + interval '2 s' * random(), at + interval '2 s'
    FROM (
        SELECT *, CASE WHEN i % 50 = 0 THEN 'FAILED' WHEN i % 25 = 1 THEN 'SKIPPED'
            ELSE 'COMPLETED' END AS state
        FROM ({fires}) fires
    ) jobs
"""
_DAILY = _JOBS.replace(
    "{fires}",
    """
    SELECT i, s.*, clock_timestamp() - (i / :n) * interval '1 day' - s.rank * interval '8 s' AS at
    FROM generate_series(CAST(:first AS int), :last) i JOIN (
        SELECT id, name, task, row_number() OVER (ORDER BY name) - 1 AS rank
        FROM cronq_schedule WHERE name <> 'busy'
    ) s ON s.rank = i % :n""",
)
_BUSY = _JOBS.replace(
    "{fires}",
    """
    SELECT i, id, name, task, date_trunc('minute', now()) - i * interval '1 min' AS at
    FROM generate_series(CAST(:first AS int), :last) i, cronq_schedule WHERE name = 'busy'""",
)
_ATTEMPTS = """
    INSERT INTO cronq_attempt (job_id, token, number, worker, started_at, ended_at, outcome)
    SELECT id, id, 1, worker, started_at, finished_at, state FROM cronq_job WHERE state <> 'SKIPPED'
"""


def measure(schedules: int, jobs: int, times: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each page: the first time, and the median and the worst of the others."""
    with DurablePostgreSQL() as postgresql, RedisServer() as redis:
        url = postgresql.database()
        database = Database(url)
        upgrade(database)
        fill(database, schedules, jobs)
        failed = list_jobs(database, JobFilter(state=State.FAILED), limit=1)[0]
        database.dispose()
        port = str(free_port())
        env = {"CRONQ_DATABASE_URL": url, "CRONQ_REDIS_URL": redis.url}
        words = [sys.executable, "-m", "cronq", "api", "--port", port]
        yesterday = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT%H:%M}"
        with (
            Process("api", words, log=postgresql.folder / "api.log", env=env),
            httpx.Client(timeout=30) as client,
        ):
            site = f"http://127.0.0.1:{port}"
            wait_for(
                lambda: client.get(f"{site}/healthz").is_success, 20, "the API", ignoring=httpx.HTTPError
            )
            return {
                name: _timed(client, site + path.format(job=failed["id"], yesterday=yesterday), times)
                for name, path in PAGES.items()
            }


def _timed(client: httpx.Client, address: str, times: int) -> dict[str, float]:
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer = client.get(address, headers={"Accept": "text/html"})
        took.append(round((time.perf_counter() - began) * 1000, 1))
        assert answer.is_success, (address, answer.status_code, answer.text)
    return {"first": took[0], "median": round(statistics.median(took[1:]), 1), "worst": max(took[1:])}


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.schedules, asked.jobs, asked.times)
    if asked.json:
        print(json.dumps({"bench": "pages", "load": load(), "pages": found}))
        return
    print("| page | first, ms | median, ms | worst, ms |\n|---|---|---|---|")
    for name, ms in found.items():
        print(f"| {name} | {ms['first']:.0f} | {ms['median']:.0f} | {ms['worst']:.0f} |")
    slow = [name for name, ms in found.items() if max(ms.values()) > BAR_MS]
    print(f"\nover {BAR_MS} ms: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
