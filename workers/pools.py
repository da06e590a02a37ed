"""Which queues there are, and how many jobs at a time each worker takes."""

import os

from kombu import Queue

QUEUES = (Queue("celery"), Queue("video"))

ROUTES = {"tasks.transcode": {"queue": "video"}}

CONCURRENCY = int(os.environ.get("WORKER_CONCURRENCY", "2"))
