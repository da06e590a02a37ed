"""When a thousand clients that follow one job know of a change, and what they cost the workers.

A running API process, clients in a process of their own, and changes made as a worker makes them: a claim or
a settlement in SQL, a progress report in Redis. A change's instant is the one that is written with it, before
it is committed.
"""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import httpx
import psutil

from benchmarks.figures import Bar, combine, ratio, spread
from benchmarks.options import Options
from benchmarks.stage import Stage, load
from benchmarks.worker_beside import at_a_pace, full_speed
from cronq.job import Outcome, State, Trigger, demanded_job_id
from cronq.progress.board import Board
from cronq.store.agenda import DueJob
from cronq.store.attempts import Settlement, claim, settle
from cronq.store.jobs import add_job, get_job
from cronq.views import iso
from tests.support.processes import ROOT, Process, wait_for
from tests.support.server import free_port

ROUNDS_S = 1.0
"""Seconds between two changes of state; four progress reports fall between them."""
BARS = [
    Bar("change_p99_s", 0.2),
    Bar("progress_p99_s", 0.2),
    Bar("missed", 0),
    Bar("worker_ratio", 0.9, at_least=True),
]


def run_followers(options: Options) -> dict[str, Any]:
    """Measure, and return what the JSON line says."""
    before = load()
    with Stage(options.broker, options.database) as stage:
        runs = [_run(stage, options) for _ in range(options.reps)]
    result: dict[str, Any] = {
        "bench": "followers",
        "n": options.n,
        "database": options.database,
        "reps": options.reps,
        **combine(runs),
        "load_before": before,
        "load_after": load(),
    }
    result["bars"] = [bar.judge(result.get(bar.figure)) for bar in BARS]
    return result


def _run(stage: Stage, options: Options) -> dict[str, Any]:
    stage.empty()
    with _api(stage) as (api, port):
        followed = Followed(stage)
        before, paced = full_speed(stage, _nothing), at_a_pace(stage, _nothing)
        with _clients(port, f"/api/jobs/{followed.job_id}/events", options.n) as clients:
            used, began = _cpu_s(api), time.monotonic()
            followed.change_for(options.seconds)
            used = (_cpu_s(api) - used) / (time.monotonic() - began)
            periods = [("paced", time.time())]
            paced_beside = at_a_pace(stage, followed.change)
            periods.append(("busy", time.time()))
            beside = full_speed(stage, followed.change)
            arrived = _end(clients)
        # Before and after: what else goes on on the machine changes meanwhile.
        alone = round((before + full_speed(stage, _nothing)) / 2, 1)
    return {
        **_judged(arrived, followed, periods, options.n),
        "api_cpu_share": round(used, 3),
        "jobs_per_s_alone": alone,
        "jobs_per_s": beside,
        "worker_ratio": ratio(beside, alone),
        **{f"paced_alone_{name}": value for name, value in paced.items()},
        **{f"paced_{name}": value for name, value in paced_beside.items()},
    }


def _nothing() -> None:
    time.sleep(0.05)


class Followed:
    """The job that all follow, and who changes it."""

    def __init__(self, stage: Stage) -> None:
        self.database = stage.database
        self.board = Board(stage.redis.client(), prefix="cronq:")
        self.job_id, self.attempt = demanded_job_id(None), 0
        self.token = ""
        self.reports: list[str] = []
        job = DueJob(
            id=self.job_id, task="bench.followed", args=[], kwargs={}, due_at=self.database.clock(),
            trigger=Trigger.DEMAND, max_attempts=1000,
        )  # fmt: skip
        add_job(self.database, job, due=0.0)
        self._start()
        self.first = iso(get_job(self.database, self.job_id)["updated_at"])

    def change_for(self, seconds: float) -> None:
        """Let it change for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.change()

    def change(self) -> None:
        """End an attempt and begin the next, with progress between: one round."""
        for number in range(4):
            self._report(number)
            time.sleep(ROUNDS_S / 8)
        self._end()
        time.sleep(ROUNDS_S / 4)
        self._start()
        time.sleep(ROUNDS_S / 4)

    def _report(self, number: int) -> None:
        now = time.time()
        self.reports.append(repr(now))
        self.board.write(
            self.job_id,
            {"job_id": self.job_id, "attempt": self.attempt, "progress": 25 * number, "updated_at": now},
        )

    def _start(self) -> None:
        self.token = str(uuid.uuid4())
        got = claim(self.database, self.job_id, token=self.token, worker="bench", lease_s=3600)
        assert got is not None
        self.attempt = got.attempt

    def _end(self) -> None:
        settlement = Settlement(
            job_id=self.job_id, token=self.token, worker="bench", number=self.attempt, outcome=Outcome.FAILED,
            state=State.RETRYING, retry_in_s=0.0,
        )  # fmt: skip
        assert settle(self.database, settlement)


def _judged(
    arrived: dict[str, list[float]], followed: Followed, periods: list[tuple[str, float]], clients: int
) -> dict[str, Any]:
    """Return how long after each change each client had it, apart for those of `periods` that began."""
    late: dict[str, list[float]] = {"progress": [], "change": [], **{name: [] for name, _ in periods}}
    missed, doubled = clients * len(set(followed.reports) - set(arrived)), 0
    for changed, moments in arrived.items():
        if changed == followed.first:
            continue  # it was so when they came
        is_report = changed in followed.reports
        at = float(changed) if is_report else datetime.fromisoformat(changed).timestamp()
        kind = "progress" if is_report else "change"
        for name, began in periods:
            kind = name if at >= began else kind
        late[kind] += [moment - at for moment in moments]
        missed += max(0, clients - len(moments))
        doubled += max(0, len(moments) - clients)
    every = {name: value for kind, found in late.items() for name, value in spread(found, kind).items()}
    return {**every, "changes": len(arrived) - 1, "missed": missed, "doubled": doubled}


@contextmanager
def _api(stage: Stage) -> Iterator[tuple[Process, int]]:
    port = free_port()
    argv = [sys.executable, "-m", "cronq", "api", "--port", str(port)]
    env = {**stage.env, "CRONQ_API_RATE": "100000"}  # all clients come from one address, at once
    api = Process("api", argv, log=stage.folder / "api.log", env=env, cwd=stage.folder)
    with api:
        alive = f"http://127.0.0.1:{port}/healthz"
        wait_for(lambda: httpx.get(alive).is_success, 30, "the API to answer", ignoring=httpx.HTTPError)
        yield api, port


@contextmanager
def _clients(port: int, path: str, count: int) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "benchmarks.follower_clients", "127.0.0.1", str(port), path, str(count)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as clients:
        assert clients.stdout is not None
        assert clients.stdout.readline() == "ready\n", "the clients could not connect"
        yield clients


def _end(clients: subprocess.Popen[str]) -> dict[str, list[float]]:
    time.sleep(1.0)  # what is on its way
    out, _ = clients.communicate()
    found: dict[str, list[float]] = json.loads(out)
    return found


def _cpu_s(process: Process) -> float:
    used = psutil.Process(process.pid).cpu_times()
    return float(used.user + used.system)
