"""`celery -A workers.app worker`: does the work, whatever asked for it."""

from celery import Celery

from cronq import configure
from workers.pools import CONCURRENCY, QUEUES, ROUTES

app = configure(Celery("reference"))
app.conf.update(
    imports=(
        "tasks.billing",
        "tasks.cleanup",
        "tasks.health",
        "tasks.housekeeping",
        "tasks.ranking",
        "tasks.reports",
        "tasks.repositories",
        "tasks.tenants",
        "tasks.video",
        "tasks.visitors",
    ),
    task_queues=QUEUES,
    task_routes=ROUTES,
    worker_concurrency=CONCURRENCY,
    worker_prefetch_multiplier=1,
)
