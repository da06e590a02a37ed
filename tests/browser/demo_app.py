"""The app of the browser tests: tasks that go as far as the test lets them.

`DEMO_GATE` is a folder: the file `steps` in it says how many steps of ten a `steps` job may take, and
`mended` lets `fragile` succeed.
"""

import os
import time
from pathlib import Path

from celery import Celery

from cronq import configure, cron, every, progress

app = configure(Celery("demo"))
app.conf.beat_schedule = {
    "heartbeat": {"task": "demo.quick", "schedule": every("2s", overlap="allow")},
    "nightly-backup": {"task": "demo.quick", "schedule": cron("30 2 * * *", tz="Europe/Berlin")},
    "weekly/cleanup & more": {"task": "demo.quick", "schedule": cron("0 4 * * 0", tz="America/New_York")},
    "long-import": {"task": "demo.steps", "schedule": every("1d", overlap="allow")},
}
NAMES = ["asking", "reading", "parsing", "checking", "adding", "sorting", "sum", "writing", "telling", "end"]
STEPS = len(NAMES)


def gate(name: str) -> Path:
    return Path(os.environ["DEMO_GATE"]) / name


@app.task(name="demo.quick")
def quick() -> None:
    progress.update(1, 1, "done")


@app.task(name="demo.steps")
def steps() -> int:
    """Take one step after the other, each when the test allows it."""
    progress.log("importing rates from https://ann:s3cr3t-p4ss@rates.example/")
    for number in range(STEPS):
        while number >= int(gate("steps").read_text() or 0):
            progress.update(number, STEPS, NAMES[number])
            time.sleep(0.05)
    return STEPS


@app.task(name="demo.region")
def region(name: str) -> str:
    """Add up one region; one of them takes as long as `steps`."""
    if name == "atlantis":
        raise RuntimeError("nobody lives in atlantis")
    if name == "ghana":
        steps()
    return name


@app.task(name="demo.fragile")
def fragile(password: str = "") -> str:
    if not gate("mended").exists():
        raise RuntimeError("the rates server at https://ann:s3cr3t-p4ss@rates.example/ said 503")
    return "mended"


def past(api_key: str = "") -> None:
    """Do what the schedules with a past go on with."""


for name in ("report", "import_rates", "invoices", "prune", "digests", "sync"):
    app.task(name=f"demo.{name}")(past)
