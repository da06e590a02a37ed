"""`celery -A beat.app beat -S cronq`: decides when the work starts, and knows it by name only."""

from celery import Celery

from beat.schedules import SCHEDULES
from cronq import configure
from workers.pools import QUEUES, ROUTES

app = configure(Celery("reference"))
app.conf.update(beat_schedule=SCHEDULES, task_queues=QUEUES, task_routes=ROUTES)
