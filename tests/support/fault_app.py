"""The app of the fault tests: two schedules a second, and tasks that write down when they start and end.

`FAULT_JOURNAL` is the file that they write to, `FAULT_GATE` the one that a `hold` waits for, and
`FAULT_SCHEDULES` how many schedules there are.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

from celery import Celery
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from cronq import configure, current_job, every, progress
from cronq.app import cronq_of
from cronq.failpoints import failpoint

app = configure(Celery("faults"))
app.conf.update(
    task_acks_late=bool(os.environ.get("FAULT_ACKS_LATE")),
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    worker_soft_shutdown_timeout=float(os.environ.get("FAULT_SOFT_S", "0")),
)
app.conf.beat_schedule = {
    # Each fire time is to run, side by side with others if it must.
    f"s{number}": {"task": "faults.work", "schedule": every("1s", overlap="allow", catch_up="all")}
    for number in range(int(os.environ.get("FAULT_SCHEDULES", "2")))
}


def note(what: str) -> None:
    job = current_job()
    assert job is not None
    line = f"{what} {job.id} {job.attempt} {os.getpid()} {time.time()}\n"
    # One write of a short line is never torn.
    fd = os.open(os.environ["FAULT_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)


@app.task(name="faults.work")
def work() -> None:
    note("start")
    note("end")


@app.task(name="faults.nap")
def nap() -> None:
    """Take long enough for another to run at the same time."""
    note("start")
    time.sleep(0.1)
    note("end")


@app.task(
    name="faults.call",
    autoretry_for=(ConnectionError,),
    max_retries=50,
    retry_backoff=False,
    default_retry_delay=0,
)
def call() -> None:
    """Call a service that is well only while the gate is open."""
    note("start")
    if not Path(os.environ["FAULT_GATE"]).exists():
        raise ConnectionError("the service does not answer")
    time.sleep(0.05)
    note("end")


@app.task(name="faults.hog")
def hog(seconds: float) -> None:
    """Let no other thread of this process run for a while."""
    note("start")
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    note("end")


@app.task(name="faults.unsettled")
def unsettled() -> None:
    """Let a fault of the worker keep the first attempt's outcome from being written."""
    note("start")
    job = current_job()
    assert job is not None
    if job.attempt == 1:
        desk = cronq_of(app).desk

        def broken(_settlement: object) -> bool:
            del desk.settle
            raise RuntimeError("a test breaks this")

        desk.settle = broken  # type: ignore[method-assign]


@app.task(name="faults.leave")
def leave() -> None:
    """End like a script."""
    note("start")
    sys.exit("nothing to do for me")


@app.task(name="faults.hold")
def hold() -> str:
    """Work until the test opens the gate."""
    note("start")
    gate = Path(os.environ["FAULT_GATE"])
    while not gate.exists():
        time.sleep(0.02)
    failpoint("mid_task")
    note("end")
    return f"attempt {getattr(current_job(), 'attempt', None)}"


@app.task(name="faults.post_entry")
def post_entry() -> None:
    """Write one line into the `ledger`, and the job's outcome with it, in one transaction."""
    job = current_job()
    assert job is not None
    note("start")
    gate = Path(os.environ["FAULT_GATE"])
    while job.attempt == 1 and not gate.exists():
        time.sleep(0.02)
    url = os.environ["CRONQ_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
    with Session(create_engine(url)) as session, session.begin():
        entry = {"job": job.id, "attempt": job.attempt}
        session.execute(text("INSERT INTO ledger (job, attempt) VALUES (:job, :attempt)"), entry)
        failpoint("mid_task")
        job.settle(session, result="posted")
        failpoint("before_commit")
    failpoint("after_commit")
    note("end")


@app.task(name="faults.two_steps")
def two_steps() -> None:
    """Do two things, each once, and be killed where the test says."""
    job = current_job()
    assert job is not None
    note("start")
    job.once("first", lambda: noting("first", job.attempt))
    failpoint("mid_task")
    job.once("second", lambda: noting("second", job.attempt))
    note("end")


def noting(what: str, attempt: int) -> int:
    note(what)
    return attempt


@app.task(name="faults.overrun", time_limit=1.5)
def overrun() -> None:
    """Run over the hard time limit, at the first attempt."""
    hold_first("start")


@app.task(name="faults.overrun_softly", soft_time_limit=1)
def overrun_softly() -> None:
    """Run over the soft time limit, at the first attempt, reporting all the while."""
    hold_first("start", reporting=True)


def hold_first(what: str, *, reporting: bool = False) -> None:
    note(what)
    job = current_job()
    gate = Path(os.environ["FAULT_GATE"])
    while job is not None and job.attempt == 1 and not gate.exists():
        time.sleep(0.02)
        if reporting:
            progress.update(0)
    note("end")
