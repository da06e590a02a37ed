"""Which queues there are, what each worker offers, and how many jobs at a time it takes.

`WORKER_OFFERS` names the kinds of machine that this worker is (`cpu,memory`), `WORKER_PLACE` where it stands
(`eu-west.a`); unset, it takes what needs none of these.
"""

import os

from kombu import Queue

from cronq.needs import offered_queues

OFFERS = [each for each in os.environ.get("WORKER_OFFERS", "").split(",") if each]

QUEUES = tuple(
    Queue(name, queue_arguments={"x-queue-type": "quorum"})  # of RabbitMQ; Redis has one kind only
    for name in ("celery", "video", *offered_queues(OFFERS, os.environ.get("WORKER_PLACE", "")))
)

ROUTES = {"tasks.transcode": {"queue": "video"}}

CONCURRENCY = int(os.environ.get("WORKER_CONCURRENCY", "2"))
