"""The app of the fault tests: two schedules a second, and tasks that write down when they start and end.

`FAULT_JOURNAL` is the file that they write to, `FAULT_GATE` the one that a `hold` waits for, and
`FAULT_SCHEDULES` how many schedules there are.
"""

import os
import time
from pathlib import Path

from celery import Celery

from cronq import configure, current_job, every

app = configure(Celery("faults"))
app.conf.update(worker_prefetch_multiplier=1, worker_send_task_events=False)
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


@app.task(name="faults.hold")
def hold() -> str:
    """Work until the test opens the gate."""
    note("start")
    gate = Path(os.environ["FAULT_GATE"])
    while not gate.exists():
        time.sleep(0.02)
    note("end")
    return f"attempt {getattr(current_job(), 'attempt', None)}"
