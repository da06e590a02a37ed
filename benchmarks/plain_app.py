"""The app of a worker without cronq: what Celery alone costs."""

import os
import time

from celery import Celery, signals

from benchmarks.noop import add_noop, settings

# cronq is installed here, so Celery has loaded it; this worker is to be as if it were not.
signals.celeryd_init.disconnect(dispatch_uid="cronq.prepare_worker")

app = Celery("bench", broker=os.environ["CRONQ_BROKER_URL"], set_as_current=True)
app.conf.update(settings())
add_noop(app, time.time)
