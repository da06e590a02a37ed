"""A Celery app as anyone's; CELERY_BROKER_URL and CELERY_RESULT_BACKEND say where it works."""

import os

from celery import Celery

app = Celery(
    "plain",
    broker=os.environ["CELERY_BROKER_URL"],
    backend=os.environ["CELERY_RESULT_BACKEND"],
    include=["tests.e2e.plain_tasks"],
)
