"""The app of Celery's own beat and of RedBeat, with the same kind of bodies, to compare cronq to."""

import os
import time

from celery import Celery, current_task, signals

from tests.faults.bench import journal
from tests.faults.bench.workload import LONG_S

# cronq is installed here, so Celery has loaded it; these workers are to be as if it were not.
signals.celeryd_init.disconnect(dispatch_uid="cronq.prepare_worker")

app = Celery("rival", broker=os.environ["CRONQ_BROKER_URL"], set_as_current=True)
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    redbeat_redis_url=os.environ["CRONQ_REDIS_URL"],
    redbeat_lock_timeout=5.0,
    beat_schedule={
        **{
            f"tick-{n:02}": {"task": "rival.work", "schedule": 1.0, "args": (f"tick-{n:02}", 0.0)}
            for n in range(int(os.environ["BENCH_TICKS"]))
        },
        "long": {"task": "rival.work", "schedule": 5.0, "args": ("long", LONG_S)},
    },
)


@signals.after_task_publish.connect
def note_sent(headers=None, body=None, **_kwargs):
    args, _kwargs, _embed = body
    journal.write("sent", headers["id"], args[0])


@app.task(name="rival.work")
def work(schedule: str, body_s: float) -> None:
    job = current_task.request.id
    journal.write("start", job, schedule)
    if body_s:
        time.sleep(body_s)
    journal.write("end", job, schedule)
