"""A worker's parent keeps the leases of its busy children, and of nobody else."""

import subprocess
from collections.abc import Iterator

import pytest

from cronq.store.database import Database
from cronq.worker.lease_guardian import LeaseGuardian

from .rows import LEASE_S, Rows


@pytest.fixture
def child() -> Iterator[int]:
    """The id of a child process that runs until the test is over."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def test_a_child_that_does_not_renew_keeps_the_jobs_that_it_works_on(
    database: Database, rows: Rows, child: int
) -> None:
    busy, given_up = rows.job(), rows.job()
    rows.claim(busy, "busy", f"w@h/{child}")
    rows.claim(given_up, "given up", f"w@h/{child}")
    rows.expire(busy)
    rows.expire(given_up)
    guardian = LeaseGuardian(database, "w@h", lease_s=LEASE_S, in_hand=lambda: {busy})
    assert guardian.look() == ["busy"]
    assert rows.row(busy)["lease_until"] > rows.now() > rows.row(given_up)["lease_until"]


def test_a_child_that_is_gone_loses_its_jobs(database: Database, rows: Rows) -> None:
    job_id = rows.job()
    with subprocess.Popen(["/bin/true"]) as gone:
        pass
    rows.claim(job_id, "t", f"w@h/{gone.pid}")
    rows.expire(job_id)
    assert LeaseGuardian(database, "w@h", lease_s=LEASE_S, in_hand=lambda: {job_id}).look() == []
