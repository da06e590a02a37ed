"""How soon a worker is back after its broker was away."""

from typing import Any

import kombu
from celery import Celery

PAUSES_S = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}


class PromptConnection(kombu.Connection):  # type: ignore[misc]
    """Tries again at least each two seconds.

    kombu's pauses grow to half a minute: after an outage of one minute a worker would stand idle for up to
    sixteen seconds more, with due jobs in its queue.
    """

    def ensure_connection(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Connect, however long it takes, or as often as `max_retries` says."""
        return super().ensure_connection(*args, **{**PAUSES_S, **kwargs})


def reconnect_promptly(app: Celery) -> None:
    """Let every connection that `app` opens from now on be a prompt one."""
    app.amqp.Connection = PromptConnection
