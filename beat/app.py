"""`celery -A beat.app beat -S cronq`: decides when the work starts, and knows it by name only."""

from celery import Celery

from beat.schedules import LIMITS, SCHEDULES
from cronq import configure
from workers.pools import QUEUES, ROUTES

app = configure(Celery("reference"))
app.conf.update(beat_schedule=SCHEDULES, cronq_limits=LIMITS, task_queues=QUEUES, task_routes=ROUTES)
