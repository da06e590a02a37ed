"""The app of the tests of failures: the fault tests' tasks, and some that fail in every way there is."""

import os
from typing import Any

from cronq import Permanent, current_job
from cronq.retry import Fixed, Kind, Policy
from tests.support.fault_app import app, note

__all__ = ["app"]


class TooMany(Exception):
    """What a client raises that was told when to come back."""

    retry_after = 1.0


@app.task(name="failing.always")
def always() -> None:
    note("start")
    raise ValueError("bad rows")


@app.task(name="failing.takes_one")
def takes_one(number: int) -> int:
    note("start")
    return number


@app.task(name="failing.asks_again", bind=True, max_retries=2)
def asks_again(self: Any) -> None:
    note("start")
    raise self.retry(exc=ConnectionError("gone"), countdown=0)


@app.task(
    name="failing.autoretry", autoretry_for=(Exception,), retry_backoff=1, retry_backoff_max=1, max_retries=2
)
def autoretry() -> None:
    note("start")
    raise ConnectionError("gone")


@app.task(name="failing.permanent", autoretry_for=(Exception,), max_retries=9)
def permanent() -> None:
    note("start")
    raise Permanent("no such customer")


@app.task(
    name="failing.by_policy",
    cronq_retry=[Policy(on=Kind.NETWORK, attempts=3, wait=Fixed(0)), Policy(on=KeyError, attempts=9)],
)
def by_policy() -> None:
    note("start")
    raise ConnectionError("gone")


@app.task(name="failing.rate_limited", cronq_retry=Policy(on=Kind.RATE_LIMITED, attempts=2, wait=Fixed(0)))
def rate_limited() -> None:
    note("start")
    job = current_job()
    if job is not None and job.attempt == 1:
        raise TooMany("slow down")


@app.task(name="failing.too_long", cronq_retry=Policy(attempts=99, max_age=0.5, wait=Fixed(0.6)))
def too_long() -> None:
    note("start")
    raise ConnectionError("gone")


@app.task(name="failing.plain")
def plain() -> None:
    """Run as a plain message of Celery, without a job."""
    with open(os.environ["FAULT_JOURNAL"], "a") as journal:  # noqa: PTH123
        journal.write("plain - 0 0 0\n")


if "FAULT_LATE" in os.environ:

    @app.task(name="failing.late")
    def late() -> None:
        plain()
