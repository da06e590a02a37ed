"""The app of the bench's beats and workers: the workload, and bodies that write down when they run.

`BENCH_START_MS` and `BENCH_TICKS` say from when on there are how many schedules; `BENCH_MUTANT` names a
guarantee that is switched off in this process (see `mutants`).
"""

import os
import signal
import time

from celery import Celery, signals

from cronq import configure, current_job
from tests.faults.bench import journal, mutants
from tests.faults.bench.workload import workload

app = configure(Celery("bench"))
app.conf.update(worker_prefetch_multiplier=1, worker_send_task_events=False, task_track_started=False)
_start_ms = int(os.environ["BENCH_START_MS"])
app.conf.beat_schedule = {
    each.name: each.entry(_start_ms) for each in workload(int(os.environ["BENCH_TICKS"]))
}
mutants.apply(os.environ.get("BENCH_MUTANT"))


@signals.after_task_publish.connect
def note_sent(headers=None, **_kwargs):
    journal.write("sent", headers["id"])


@signals.task_prerun.connect
def note_taken(task_id=None, **_kwargs):
    journal.write("taken", task_id)


def note(what: str) -> None:
    job = current_job()
    fire_ms = -1 if job.fire_time is None else round(job.fire_time.timestamp() * 1000)
    journal.write(what, job.id, job.schedule, fire_ms, job.attempt)


@app.task(name="bench.work", bind=True, max_retries=5)
def work(self, body_s: float = 0.0, fails_first: bool = False) -> None:
    note("start")
    if body_s:
        time.sleep(body_s)
    note("end")
    if fails_first and current_job().attempt == 1:
        raise self.retry(countdown=0.5)


@app.task(name="bench.poison")
def poison() -> None:
    """Take the process down that runs it."""
    note("start")
    os.kill(os.getpid(), signal.SIGKILL)
