"""One schedule with one fire time; its job says how far it is, and waits for the test to open a gate."""

import os
import time
from pathlib import Path

from celery import Celery

from cronq import at, configure, progress

app = configure(Celery("progress"))
app.conf.worker_send_task_events = False  # what `-E` says counts
app.conf.beat_schedule = {
    "add-up": {"task": "add_up", "args": ("march",), "schedule": at(os.environ["DUE_AT"], tenant="acme")}
}


@app.task(name="add_up")
def add_up(month: str) -> int:
    progress.update(42, 100, "Adding up")
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.05)
    progress.update(100, 100, "Written down")
    return 31
