"""One installation under test: its servers, its network, its beats and workers, and who is in what state."""

import contextlib
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Self

import psutil
import redis
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from cronq.store.database import Database
from cronq.store.schema import upgrade
from tests.faults.bench import journal
from tests.faults.bench.clocks import WallClock
from tests.faults.bench.proxy import Link, Network
from tests.faults.bench.small_disk import SmallDiskPostgreSQL, may_mount
from tests.faults.bench.timings import HORIZON_S, LEASE_S, LOCK_S, REPUBLISH_S
from tests.support.processes import Process, wait_for
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer

BEATS, WORKERS = ("b1", "b2"), ("w1", "w2")
WORKER_ARGS = {"w1": ("--pool", "prefork", "-c", "4"), "w2": ("--pool", "threads", "-c", "6")}
START_DELAY_S = 12.0
"""Seconds until the first fire time: by then every process is up."""


def _postgresql() -> PostgreSQLServer:
    return SmallDiskPostgreSQL() if may_mount() else PostgreSQLServer()


class Installation:
    """Two beats and two workers; each beat and worker w1 reaches every server by a link of its own."""

    def __init__(
        self,
        folder: Path,
        broker: str,
        database: str,
        *,
        ticks: int,
        mutant: str | None = None,
        statements: tuple[str, ...] = (),
        horizon_s: float = HORIZON_S,
    ) -> None:
        self.folder, self.broker, self.kind = folder, broker, database
        self.ticks, self.mutant, self._statements = ticks, mutant, statements
        self._horizon_s = horizon_s
        self.beats = BEATS
        self.journal = folder / "journal"
        self.processes: dict[str, Process] = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.clocks: dict[str, WallClock] = {}
        self.down: set[str] = set()  # processes that the injector ended, and will start again
        self.ended: list[str] = []  # those that ended although nobody killed them
        self.killed_children: set[int] = set()
        self._exits = contextlib.ExitStack()
        self._leader: str | None = None

    @property
    def name(self) -> str:
        return f"{self.broker} and {self.kind}"

    def __enter__(self) -> Self:
        enter = self._exits.enter_context
        try:
            self.network = enter(Network())
            self.redis = enter(RedisServer())
            self.rabbitmq = enter(RabbitMQServer()) if self.broker == "rabbitmq" else None
            self.postgresql = enter(_postgresql()) if self.kind == "postgresql" else None
            self._open_database()
            self._exits.callback(self._end_all)
            # One reading: the journal's clock and the servers' are the same machine's.
            self.wall_minus_monotonic = time.time() - time.monotonic()
            self.start_ms = int((time.time() + START_DELAY_S) * 1000)
            for name in (*self.beats, *WORKERS):
                self.start(name)
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _open_database(self) -> None:
        if self.postgresql is not None:
            self.database_url = self.postgresql.database()
        else:
            self.database_url = f"sqlite:///{self.folder}/cronq.db"
        database = Database(self.database_url)
        upgrade(database)
        database.dispose()
        url = make_url(self.database_url)
        if self.kind == "sqlite":
            more: dict[str, Any] = {"connect_args": {"timeout": 2}}
        else:
            more = {"pool_pre_ping": True, "connect_args": {"connect_timeout": 1}}
        self._engine = create_engine(url, isolation_level="AUTOCOMMIT", **more)
        self._exits.callback(self._engine.dispose)
        for statement in self._statements:
            self.query(statement)

    # -- processes -----------------------------------------------------------------------------------------

    def start(self, name: str, *, failpoint: str | None = None, args: tuple[str, ...] = ()) -> Process:
        """Start the process `name`, or start it again; a beat or a worker by its first letter."""
        env = self._env(name, linked=name != "w2")
        if failpoint is not None:
            env["CRONQ_FAILPOINT"] = failpoint
        argv = [sys.executable, "-m", "celery", *self._command(name), *args, "-l", "INFO"]
        process = Process(name, argv, log=self.folder / f"{name}.log", env=env)
        self.processes[name] = process.start()
        self.down.discard(name)
        return process

    def _command(self, name: str) -> tuple[str, ...]:
        """Return the words after `celery` that start the process `name`."""
        app = ("-A", "tests.faults.bench.app")
        if name[0] == "b":
            return (*app, "beat", "-S", "cronq")
        quick = ("--without-mingle", "--without-gossip")
        return (*app, "worker", "-n", f"{name}@%h", *quick, *WORKER_ARGS.get(name, ()))

    def kill(self, name: str) -> None:
        self.down.add(name)
        self.processes[name].kill()

    def stop(self, name: str) -> None:
        """Tell it to end, as an operator would, and wait for it."""
        self.down.add(name)
        self.processes[name].stop(30)

    def dismiss(self, name: str) -> None:
        """Kill a process that only one fault needed."""
        self.kill(name)
        del self.processes[name]

    def ready(self, name: str) -> bool:
        """Tell whether a worker takes messages, or a beat competes for the lead."""
        process = self.processes[name]
        if name[0] == "w":
            return " ready." in process.new_output()
        with contextlib.suppress(redis.RedisError), self.redis.client(1) as client:
            return process.running and bool(client.keys(f"cronq:beat:*:{process.pid}:*"))
        return False

    def watch(self) -> None:
        """Note each process that ended by itself, and start it again as a supervisor would."""
        for name, process in tuple(self.processes.items()):
            if name not in self.down and not process.running:
                self.ended.append(f"{name} ended with {process.returncode}:\n{process.tail(8)}")
                self.start(name)

    def children_that_ended(self) -> list[str]:
        """Return what the workers say of pool processes that nobody killed."""
        said = []
        for name in WORKERS:
            output = (self.folder / f"{name}.log").read_text(errors="replace")
            for pid, how in re.findall(r"Process '\S+' pid:(\d+) exited with '([^']*)'", output):
                if int(pid) not in self.killed_children:
                    said.append(f"a pool process of {name}, {pid}, exited with {how}")
        return said

    def _env(self, name: str, *, linked: bool) -> dict[str, str]:
        clock = self.clocks.setdefault(name, WallClock(self.folder, name))
        env = {
            **clock.env,
            "CRONQ_REDIS_URL": self._reach(name, "redis", f"redis://127.0.0.1:{self.redis.port}/1", linked),
            "CRONQ_BROKER_URL": self._reach(name, "broker", self.broker_url, linked),
            "CRONQ_DATABASE_URL": self._reach(name, "sql", self.database_url, linked),
            "CRONQ_LOCK_S": str(LOCK_S),
            "CRONQ_LEASE_S": str(LEASE_S),
            "CRONQ_REPUBLISH_S": str(REPUBLISH_S),
            "CRONQ_HORIZON_S": str(self._horizon_s),
            journal.JOURNAL: str(self.journal),
            journal.NAME: name,
            "BENCH_START_MS": str(self.start_ms),
            "BENCH_TICKS": str(self.ticks),
        }
        if self.mutant is not None:
            env["BENCH_MUTANT"] = self.mutant
        return env

    @property
    def broker_url(self) -> str:
        return self.rabbitmq.url if self.rabbitmq is not None else f"redis://127.0.0.1:{self.redis.port}/0"

    def _reach(self, name: str, store: str, url: str, linked: bool) -> str:
        """Return the URL by which the process `name` reaches a server: by its link, if it has one."""
        if not linked or url.startswith("sqlite"):
            return url
        port = int(re.search(r":(\d+)/", url)[1])
        if (name, store) not in self.links:
            self.links[name, store] = self.network.link(port)
        return url.replace(f":{port}/", f":{self.links[name, store].port}/")

    def _end_all(self) -> None:
        for process in self.processes.values():
            process.kill()

    # -- what it does --------------------------------------------------------------------------------------

    def query(self, statement: str, **values: Any) -> list[Any]:
        with self._engine.connect() as connection:
            result = connection.execute(text(statement), values)
            return list(result) if result.returns_rows else []

    def leader(self) -> str:
        """Return the beat that leads, as far as the database says; the last known one while it is away."""
        with contextlib.suppress(SQLAlchemyError):
            rows = self.query("SELECT pid FROM cronq_leader WHERE shard = 0")
            pids = {process.pid: name for name, process in self.processes.items() if name[0] == "b"}
            if rows and rows[0].pid in pids:
                self._leader = pids[rows[0].pid]
        return self._leader or self.beats[0]

    def standby(self) -> str:
        return next(name for name in self.beats if name != self.leader())

    def wait_for_leader(self, name: str, timeout: float = 20) -> None:
        pid = self.processes[name].pid
        wait_for(
            lambda: self.query("SELECT pid FROM cronq_leader WHERE shard = 0 AND pid = :pid", pid=pid),
            timeout, f"{name} to lead", ignoring=SQLAlchemyError,
        )  # fmt: skip

    def children(self, worker: str) -> list[psutil.Process]:
        """Return the pool processes of a prefork worker."""
        return psutil.Process(self.processes[worker].pid).children()

    def lose_redis_data(self) -> None:
        """Let the Redis that is down start empty."""
        shutil.rmtree(self.redis.folder / "appendonlydir", ignore_errors=True)

    def now(self) -> float:
        return time.monotonic()
