"""The app of cronq's beats and workers in the benchmarks: Celery's defaults, and one task."""

import os
import time

from celery import Celery

from benchmarks import timers
from benchmarks.noop import add_noop, settings

app = Celery("bench", broker=os.environ["CRONQ_BROKER_URL"], set_as_current=True)
app.conf.update(settings())
add_noop(app, time.time)

if "BENCH_TIMERS" in os.environ:
    timers.install()
