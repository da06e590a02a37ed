"""Workers that are killed, frozen or told to stop while they run something; or a child of their pool."""

import contextlib
import os
import signal
from functools import partial

import psutil

from tests.faults.bench import journal
from tests.faults.bench.catalogue.kinds import KINDS, Kind, kind
from tests.faults.bench.checker import Run, runs_of
from tests.faults.bench.injector import Injector
from tests.faults.bench.installation import WORKERS
from tests.faults.bench.timings import LEASE_S

FROZEN_S = LEASE_S + 2.0
EXTRA = "wx"
EXTRA_ARGS = ("--pool", "solo")
HIT_WITHIN_S = 30.0


def live_runs(injector: Injector, process: str) -> list[Run]:
    """Return the bodies that `process` is running now, according to the journal."""
    runs = runs_of(journal.read(injector.installation.journal))
    return [
        run
        for several in runs.values()
        for run in several
        if run.end is None and run.line.process == process and psutil.pid_exists(run.line.pid)
    ]


def wait_until_busy(injector: Injector, process: str) -> Run:
    """Wait until `process` runs a body that takes its time, and return the one that began last."""
    found: list[Run] = []

    def busy() -> bool:
        found[:] = [run for run in live_runs(injector, process) if run.line.schedule in ("long", "slow")]
        return bool(found)

    injector.wait_until(busy, 60, f"{process} to run something")
    return max(found, key=lambda run: run.line.at)


@kind("worker killed")
def worker_killed(injector: Injector) -> None:
    name = injector.random.choice(WORKERS)
    wait_until_busy(injector, name)
    with injector.fault("worker killed", hurt=frozenset([name]), deadly=True):
        injector.installation.kill(name)


@kind("pool process killed")
def pool_process_killed(injector: Injector) -> None:
    at = injector.installation
    pid = wait_until_busy(injector, "w1").line.pid
    at.killed_children.add(pid)
    with (
        injector.fault("pool process killed", hurt=frozenset(["w1"]), deadly=True),
        contextlib.suppress(ProcessLookupError),
    ):
        os.kill(pid, signal.SIGKILL)


@kind("pool process frozen")
def pool_process_frozen(injector: Injector) -> None:
    """A child stands still while its parent lives on, and keeps no lease for it."""
    child = psutil.Process(wait_until_busy(injector, "w1").line.pid)
    with injector.fault("pool process frozen", hurt=frozenset(["w1"])):
        child.suspend()
        injector.wait(FROZEN_S)
        with contextlib.suppress(psutil.NoSuchProcess):
            child.resume()


@kind("worker told to stop")
def worker_told_to_stop(injector: Injector) -> None:
    with injector.fault("worker told to stop"):
        injector.installation.stop(injector.random.choice(WORKERS))


@kind("worker frozen")
def worker_frozen(injector: Injector) -> None:
    name = injector.random.choice(WORKERS)
    wait_until_busy(injector, name)
    with injector.fault("worker frozen", hurt=frozenset([name])), injector.frozen(name):
        injector.wait(FROZEN_S)


def _killed_at(failpoint: str, injector: Injector) -> None:
    at = injector.installation
    process = at.start(EXTRA, failpoint=f"{failpoint}:3:kill", args=EXTRA_ARGS)
    at.down.add(EXTRA)  # it will end by itself, and that is its fault
    injector.wait_until(lambda: not process.running, HIT_WITHIN_S, f"{failpoint} to be hit")
    injector.note(f"worker killed at {failpoint}", hurt=frozenset([EXTRA]), deadly=True, failpoint=failpoint)
    at.dismiss(EXTRA)


def _frozen_at(failpoint: str, injector: Injector) -> None:
    at = injector.installation
    process = psutil.Process(at.start(EXTRA, failpoint=f"{failpoint}:3:stop", args=EXTRA_ARGS).pid)
    injector.wait_until(
        lambda: process.status() == psutil.STATUS_STOPPED, HIT_WITHIN_S, f"{failpoint} to be hit"
    )
    name = f"worker frozen at {failpoint}"
    with (
        injector.fault(name, hurt=frozenset([EXTRA]), failpoint=failpoint),
        injector.frozen(EXTRA),
    ):
        injector.wait(FROZEN_S)
    injector.wait(1.0)
    with injector.fault("extra worker told to stop"):
        at.stop(EXTRA)
    at.dismiss(EXTRA)


for _step in ("after_claim", "before_settle", "after_settle_before_ack"):
    KINDS[f"worker killed at {_step}"] = Kind(f"worker killed at {_step}", partial(_killed_at, _step))
for _step in ("after_claim", "before_settle"):
    KINDS[f"worker frozen at {_step}"] = Kind(f"worker frozen at {_step}", partial(_frozen_at, _step))
