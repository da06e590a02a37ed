"""Which queues there are, and how many jobs at a time each worker takes."""

import os

from kombu import Queue

QUEUES = tuple(
    Queue(name, queue_arguments={"x-queue-type": "quorum"})  # of RabbitMQ; Redis has one kind only
    for name in ("celery", "video")
)

ROUTES = {"tasks.transcode": {"queue": "video"}}

CONCURRENCY = int(os.environ.get("WORKER_CONCURRENCY", "2"))
