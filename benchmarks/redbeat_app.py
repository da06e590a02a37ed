"""The app of RedBeat's beats: the same as cronq's, with RedBeat's settings."""

import os

from celery import Celery

from benchmarks.noop import settings

app = Celery("bench", broker=os.environ["CRONQ_BROKER_URL"], set_as_current=True)
app.conf.update(
    settings(),
    redbeat_redis_url=os.environ["CRONQ_REDIS_URL"].rpartition("/")[0] + "/1",
    redbeat_lock_timeout=float(os.environ.get("BENCH_REDBEAT_LOCK_S", "300")),
)
