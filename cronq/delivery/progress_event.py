"""Shows how far a job is where Celery's events are watched: in Flower, among its started tasks.

A monitor keeps one state for each task, and takes an event that it does not know for a new state of that
name: `task-progress` would move the job out of the started ones. `task-started` a second time would be
counted as a second start. `task-STARTED` is unknown too, so it counts as nothing, and the state it names is
the one the task is in. Of what an event carries, Flower shows `result`.
"""

import time
from typing import Any, Final

from celery import Celery

EVENT: Final = "task-STARTED"
PAUSE_S: Final = 10.0
"""Seconds without events after one that could not be sent: no body is to wait for a broker that is away."""

_TRY_TWICE: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


class ProgressEvents:
    """Sends the progress of one worker's jobs. Safe to share between threads, not across a fork."""

    def __init__(self, app: Celery, hostname: str) -> None:
        self._app, self._hostname = app, hostname
        self._silent_until = 0.0

    def send(self, state: dict[str, Any]) -> None:
        """Send one report, unless the broker was away a moment ago; raise what the broker raises."""
        if time.monotonic() < self._silent_until:
            return
        try:
            with self._app.events.default_dispatcher(hostname=self._hostname) as dispatcher:
                # The connection may have been idle for so long that the broker has closed it.
                dispatcher.send(
                    EVENT, uuid=state["job_id"], result=in_words(state), retry=True, retry_policy=_TRY_TWICE
                )
        except BaseException:
            self._silent_until = time.monotonic() + PAUSE_S
            raise


def in_words(state: dict[str, Any]) -> str:
    """Return a report as one line: `42 % · Adding up`."""
    done, step = state["steps_completed"], state["current_step"]
    amount = f"{state['progress']} %" if state["steps_total"] else f"{done:g} done"
    return amount if step is None else f"{amount} · {step}"
