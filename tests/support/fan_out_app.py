"""The app of the fault tests of fan-outs and chains: one fire time a little ahead, many items, short work.

`FAN_OUT_AT` is that fire time (ISO), `FAN_OUT_ITEMS` how many items there are, `FAULT_JOURNAL` the file that
every body writes a line to: what, the job's id, and the item or what it was given.
"""

import os
import time
from collections.abc import Iterator

from celery import Celery, chain, chord, group

from cronq import at, configure, current_job

app = configure(Celery("fan-out"))
app.conf.update(
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    result_backend=os.environ.get("CRONQ_REDIS_URL"),
)
AT = os.environ.get("FAN_OUT_AT", "2030-01-01T00:00:00+00:00")
app.conf.beat_schedule = {
    "nightly": {
        "task": "fan.work",
        "schedule": at(AT, fan_out=f"{__name__}:items", on_complete="fan.sum_up", catch_up="all"),
    },
    "report": {"task": "fan.step", "args": ["report"], "schedule": at(AT, after="nightly", catch_up="all")},
    "mail": {"task": "fan.step", "args": ["mail"], "schedule": at(AT, after="report", catch_up="all")},
}


def items() -> Iterator[str]:
    for number in range(int(os.environ.get("FAN_OUT_ITEMS", "0"))):
        yield f"item-{number:05}"


def note(what: str, detail: str) -> None:
    job = current_job()
    line = f"{what} {job.id if job else '-'} {detail}\n"
    # One write of a short line is never torn.
    fd = os.open(os.environ["FAULT_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)


@app.task(name="fan.work")
def work(item: str) -> None:
    note("work", item)
    time.sleep(float(os.environ.get("FAN_OUT_WORK_S", "0")))


@app.task(name="fan.sum_up")
def sum_up(batch: dict) -> dict:
    note("sum_up", f"{batch['completed']}/{batch['total']}")
    return batch


@app.task(name="fan.step")
def step(name: str) -> None:
    note("step", name)


@app.task(name="fan.add")
def add(a: int, b: int) -> int:
    note("add", f"{a}+{b}")
    return a + b


@app.task(name="fan.total")
def total(numbers: list[int]) -> int:
    note("total", str(sum(numbers)))
    return sum(numbers)


@app.task(name="fan.canvas")
def canvas() -> str:
    """Start a chain, a group and a chord, as any Celery task may."""
    chain(add.s(1, 2), add.s(3)).apply_async()
    group(add.s(n, 10) for n in range(3)).apply_async()
    chord((add.s(n, 100) for n in range(3)), total.s()).apply_async()
    note("canvas", "started")
    return "started"
