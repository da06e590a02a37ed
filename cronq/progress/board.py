"""Live progress in Redis: one key a job, which expires by itself. Losing it loses no job."""

import json
from collections.abc import Sequence
from typing import Any

import redis

from cronq.progress.channel import channel

MAX_LOG_LINES = 200
REPORTS = "progress"
"""The channel where reports are told of, as they come; only a picture, so that a lost one is no loss."""


class Board:
    """Writes and reads what running jobs report."""

    def __init__(self, client: redis.Redis, *, prefix: str, ttl_s: int = 86_400) -> None:
        self._client, self._prefix, self._ttl_s = client, prefix, ttl_s

    def write(self, job_id: str, state: dict[str, Any], lines: Sequence[str] = ()) -> None:
        """Put a job's progress up, and tell those who watch, in one round trip."""
        text = json.dumps(state, default=str)
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.set(f"{self._prefix}progress:{job_id}", text, ex=self._ttl_s)
            if lines:
                key = f"{self._prefix}log:{job_id}"
                pipeline.rpush(key, *lines)
                pipeline.ltrim(key, -MAX_LOG_LINES, -1)
                pipeline.expire(key, self._ttl_s)
            pipeline.publish(channel(self._client, self._prefix, REPORTS), text)
            pipeline.execute()

    def read(self, job_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the progress of those of `job_ids` that reported any."""
        if not job_ids:
            return {}
        values = self._client.mget([f"{self._prefix}progress:{job_id}" for job_id in job_ids])
        found: dict[str, dict[str, Any]] = {}
        for job_id, value in zip(job_ids, values, strict=True):
            if value is not None:
                found[job_id] = json.loads(value)
        return found

    def read_log(self, job_id: str) -> list[str]:
        """Return the last lines that a job logged."""
        return [str(line) for line in self._client.lrange(f"{self._prefix}log:{job_id}", 0, -1)]
