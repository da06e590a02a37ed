"""`celery beat -S cronq`: the thin adapter between Celery's beat service and cronq's loop."""

import sys
from typing import Any

from celery.beat import Scheduler

from cronq.app import Beat, cronq_of
from cronq.errors import CronqError
from cronq.settings import hide_password

TICK_S = 0.5


class CronqScheduler(Scheduler):  # type: ignore[misc]
    """What Celery's beat service calls; only `tick`, `close` and the banner matter to it."""

    max_interval = TICK_S

    def __init__(self, app: Any, *, lazy: bool = False, **kwargs: Any) -> None:  # noqa: ANN401
        self._beat: Beat | None = None
        self._closing = False
        # Celery builds one scheduler for its banner (lazy) and one to run; only the second starts anything.
        super().__init__(app, lazy=lazy, **{**kwargs, "max_interval": TICK_S})

    def setup_schedule(self) -> None:
        """Start to compete for leadership. An unusable configuration ends the process with one sentence."""
        try:
            self._beat = cronq_of(self.app).build_beat()
        except CronqError as error:
            sys.stderr.write(f"cronq: {error}\n")
            raise SystemExit(1) from None
        self._beat.start()

    def tick(self, *_args: Any, **_kwargs: Any) -> float:  # noqa: ANN401
        """Do what is due, and wait in here for the next thing: Celery's own sleep cannot be woken."""
        if self._beat is not None and not self._closing:
            self._beat.loop.run_once(TICK_S)
        return 0.0

    def should_sync(self) -> bool:
        """Nothing is kept in memory that would have to be written."""
        return False

    def sync(self) -> None:
        """Nothing to write."""

    def close(self) -> None:
        """Release the leadership. Celery calls this inside an interrupted tick, and again at exit."""
        self._closing = True
        if self._beat is not None:
            self._beat.stop()

    @property
    def info(self) -> str:
        """What beat's banner shows."""
        settings = cronq_of(self.app).settings
        return (
            f"    . database -> {hide_password(settings.database_url)}\n"
            f"    . redis -> {hide_password(settings.redis_url)}\n"
            f"    . lock -> {settings.lock_s:g} s, horizon -> {settings.horizon_s:g} s"
        )
