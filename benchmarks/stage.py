"""Private servers and Celery processes of one measurement; nothing of them is left behind."""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

import psutil

from benchmarks.queues import Queue, open_queue
from cronq.store.database import Database
from cronq.store.schema import upgrade
from tests.support.processes import ROOT, Process
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer

QUEUE = "bench"


class DurablePostgreSQL(PostgreSQLServer):
    """PostgreSQL as it is shipped: a commit has reached the disk. The tests' server does not wait for it."""

    def _make_process(self) -> Process:
        process = super()._make_process()
        process.argv = ["fsync=on" if word == "fsync=off" else word for word in process.argv]
        return process


class Stage:
    """Redis, the broker and the database of one measurement, with a folder for files and logs."""

    def __init__(self, broker: str, database: str) -> None:
        self.broker, self.database_kind = broker, database
        self._exits = contextlib.ExitStack()
        self._runs = 0

    def __enter__(self) -> Self:
        self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="cronq-bench-")))
        self.redis = self._exits.enter_context(RedisServer(persist=False))
        if self.broker == "rabbitmq":
            self._rabbitmq = self._exits.enter_context(RabbitMQServer())
        if self.database_kind == "postgresql":
            self._postgresql = self._exits.enter_context(DurablePostgreSQL())
        self.empty()
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def empty(self) -> None:
        """Begin anew: nothing in Redis, no message, a database with nothing but its tables."""
        self._runs += 1
        self.redis.client().flushall()
        self.broker_url = self.redis.url if self.broker == "redis" else self._rabbitmq.vhost()
        if self.database_kind == "postgresql":
            self.database_url = self._postgresql.database()
        else:
            self.database_url = f"sqlite:///{self.folder}/{self._runs}.db"
        self.database = Database(self.database_url)
        upgrade(self.database)

    def queue(self) -> Queue:
        """Return the queue as somebody sees it who is neither beat nor worker."""
        return open_queue(self.broker_url, QUEUE)

    @property
    def env(self) -> dict[str, str]:
        """What the processes are told."""
        return {
            "CRONQ_REDIS_URL": self.redis.url,
            "CRONQ_BROKER_URL": self.broker_url,
            "CRONQ_DATABASE_URL": self.database_url,
            "BENCH_QUEUE": QUEUE,
            "BENCH_FOLDER": str(self.folder),
            "PYTHONPATH": str(ROOT),
        }

    def cronq_beat(self, name: str = "cronq", **env: str) -> "Beat":
        """Return a beat of cronq, not started yet."""
        return Beat(self._celery(name, "cronq_app", ["beat", "-S", "cronq"], env))

    def redbeat(self, name: str = "redbeat", **env: str) -> "Beat":
        """Return a beat of RedBeat. It looks at least each 5 s, and keeps its lock through any burst."""
        argv = ["beat", "-S", "redbeat.RedBeatScheduler", "--max-interval", "5"]
        return Beat(self._celery(name, "redbeat_app", argv, env))

    def worker(self, app: str, *argv: str, **env: str) -> Process:
        """Return a worker of one of this package's apps, not started yet."""
        return self._celery(app, app, ["worker", *argv, "-Q", QUEUE], env)

    def _celery(self, name: str, app: str, argv: list[str], env: dict[str, str]) -> Process:
        words = [sys.executable, "-m", "celery", "-A", f"benchmarks.{app}", *argv, "-l", "WARNING"]
        # In a folder of its own: in the repository a running `cronq up` would be found.
        return Process(name, words, log=self.folder / f"{name}.log", env={**self.env, **env}, cwd=self.folder)


class Beat:
    """One beat process, and what the operating system says about it."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def __enter__(self) -> Self:
        self.started_at = time.time()
        self.process.start()
        self._seen = psutil.Process(self.process.pid)
        return self

    def __exit__(self, *error: object) -> None:
        self.process.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        used = self._seen.cpu_times()
        return float(used.user + used.system)

    def rss_mb(self) -> float:
        """Return the memory that it holds."""
        return round(self._seen.memory_info().rss / 2**20, 1)


def load() -> list[float]:
    """Return how busy the machine is, by others too: the load of the last minute, and the processors."""
    return [round(os.getloadavg()[0], 2), os.cpu_count() or 1]
