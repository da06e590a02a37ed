"""Measure the reports of ten thousand tenants at one midnight: `python -m benchmarks.tenants`.

The reference deployment as it stands, with a table of so many tenants: the items are found, planned ahead and
sent at the instant; workers make the reports. `--kill`: meanwhile the leading beat, a worker and Redis die.
The last line is JSON.
"""

import argparse
import csv
import json
import sqlite3
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.queues import open_queue
from benchmarks.stage import Stage, load
from cronq.store.terms import read_term
from tasks import orders
from tests.support.processes import ROOT, Process, Processes

ORDERS_EACH = 20
FINDER_STANDS_S = 1.5
"""Seconds before the instant at which the finding worker stands still, so that the queue can be watched."""
EXECUTE_S = 290.0


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--lead", type=float, default=30.0, help="seconds from the start to the instant")
    parser.add_argument("--enqueue-only", action="store_true", help="stop when the last message is queued")
    parser.add_argument("--kill", action="store_true", help="kill the leader, a worker and Redis meanwhile")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cronq-tenants-") as folder,
        Stage(options.broker, options.database) as stage,
    ):
        run = Run(stage, Path(folder), options)
        print(json.dumps(run.measure()))


class Run:
    """One midnight."""

    def __init__(self, stage: Stage, folder: Path, options: argparse.Namespace) -> None:
        self.stage, self.folder, self.options = stage, folder, options
        self.due = (datetime.now(UTC) + timedelta(seconds=options.lead)).replace(microsecond=0)
        self.env = {
            **stage.env,
            "PYTHONPATH": str(ROOT),
            "TENANTS_FILE": str(folder / "tenants.csv"),
            "TENANT_ZONES": "UTC",
            "TENANT_REPORTS_AT": f"{self.due.second} {self.due.minute} {self.due.hour} * * *",
            "REPORTS_AT": "0 0 1 1 *",
            "CRONQ_ORDERS_PATH": str(folder / "orders.sqlite"),
            "CRONQ_REPORTS_DIR": str(folder / "reports"),
            "CRONQ_LEASE_S": "5",
        }
        self._make_tenants()

    def measure(self) -> dict[str, Any]:
        """Live through it; return what was seen."""
        with Processes(self.folder, self.env) as processes:
            beats = [processes.beat(f"beat-{n}") for n in (1, 2)]
            finder = processes.worker("finder", "workers.app", "-c", "2")
            found = {"n": self.options.n, "broker": self.options.broker, "database": self.options.database}
            found["found_before_s"] = self._wait_found()
            time.sleep(max(0.0, self.due.timestamp() - FINDER_STANDS_S - time.time()))
            finder.pause()
            found |= self._watch_queue()
            finder.resume()
            if self.options.enqueue_only:
                return found | {"load": load()}
            workers = [
                processes.worker(f"worker-{n}", "workers.app", "-c", str(self._each())) for n in (1, 2)
            ]
            if self.options.kill:
                found["killed"] = self._kill(beats, workers, processes)
            return found | self._wait_executed() | {"load": load()}

    def _each(self) -> int:
        return max(1, self.options.slots // 2)

    def _make_tenants(self) -> None:
        """Write the table of tenants, and a few orders for each: short reports."""
        names = [f"tenant-{number:05}" for number in range(self.options.n)]
        with Path(self.env["TENANTS_FILE"]).open("w", newline="") as table:
            csv.writer(table).writerows((name, "UTC") for name in names)
        with closing(sqlite3.connect(self.env["CRONQ_ORDERS_PATH"])) as database:
            database.execute(orders.SCHEMA)
            rows = (
                (name, f"2026-01-{1 + number:02}", "bolt", 1, 120)
                for name in names
                for number in range(ORDERS_EACH)
            )
            database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
            database.execute("CREATE INDEX orders_by_tenant ON orders (tenant, day)")
            database.commit()

    def _wait_found(self) -> float | None:
        """Return how long before the instant every item was a job; None: it was not in time."""
        while (left := self.due.timestamp() - time.time()) > FINDER_STANDS_S + 0.5:
            if self._count("item <> '' AND batch_id IS NOT NULL") == self.options.n:
                return round(left, 1)
            time.sleep(0.2)
        return None

    def _watch_queue(self) -> dict[str, Any]:
        """Return when the first, the half and the last message were on the queue, from the instant."""
        queue, due, marks = open_queue(self.stage.broker_url, "celery"), self.due.timestamp(), {}
        wanted = {"first_s": 1, "half_s": self.options.n // 2, "last_s": self.options.n}
        early = queue.length()
        while len(marks) < len(wanted) and time.time() < due + 60:
            length = queue.length() - early
            for name, count in wanted.items():
                if length >= count and name not in marks:
                    marks[name] = round(time.time() - due, 3)
            time.sleep(queue.step_s)
        queue.close()
        return marks

    def _kill(self, beats: list[Process], workers: list[Process], processes: Processes) -> list[str]:
        """Kill a worker, the leading beat and Redis, each while reports are made; return the notes."""
        notes = []
        for share, what in ((0.1, "worker"), (0.3, "beat"), (0.5, "redis")):
            while self._done() < share * self.options.n:
                time.sleep(0.1)
            if what == "worker":
                workers[0].kill()
                processes.worker("worker-again", "workers.app", "-c", str(self._each()))
            elif what == "beat":
                term = read_term(self.stage.database, 0)
                next(beat for beat in beats if term is not None and beat.pid == term.pid).kill()
            else:
                self.stage.redis.kill()
                self.stage.redis.ensure_running()
            after = time.time() - self.due.timestamp()
            notes.append(f"{what} after {after:.0f} s, {self._done()} done")
        return notes

    def _wait_executed(self) -> dict[str, Any]:
        while time.time() < self.due.timestamp() + EXECUTE_S and not self._ended():
            time.sleep(0.2)
        took = time.time() - self.due.timestamp()
        reports = sum(1 for _ in (self.folder / "reports").glob("tenant-*/*.html"))
        rows = "SELECT state, count(*), max(attempts) FROM cronq_job WHERE item <> '' GROUP BY state"
        with self.stage.database.autocommit() as connection:
            states = [tuple(row) for row in connection.execute(text(rows))]
            names = "SELECT count(DISTINCT item) FROM cronq_job WHERE item <> ''"
            tenants = connection.execute(text(names)).scalar_one()
            twice = connection.execute(
                text("SELECT count(*) FROM cronq_job WHERE item <> '' AND attempts > 1")
            ).scalar_one()
        summaries = self.folder / "reports" / "summary"
        while not list(summaries.glob("*.json")) and time.time() < self.due.timestamp() + EXECUTE_S:
            time.sleep(0.2)
        return {
            "executed_s": round(took, 1),
            "states": states,
            "tenants": tenants,
            "reports": reports,
            "with_a_second_attempt": twice,
            "summary": [json.loads(path.read_text()) for path in summaries.glob("*.json")],
        }

    def _ended(self) -> bool:
        with self.stage.database.autocommit() as connection:
            ended = connection.execute(text("SELECT count(*) FROM cronq_batch WHERE ended_at IS NOT NULL"))
            return int(ended.scalar_one()) == 1

    def _done(self) -> int:
        return self._count("item <> '' AND batch_id IS NOT NULL AND state = 'COMPLETED'")

    def _count(self, where: str) -> int:
        with self.stage.database.autocommit() as connection:
            return int(connection.execute(text(f"SELECT count(*) FROM cronq_job WHERE {where}")).scalar_one())


if __name__ == "__main__":
    main()
