"""Builds everything from the settings. The only module that does."""

import os
import secrets
import socket
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import redis
from celery import Celery

from cronq.beat.catalog import collect, take_over
from cronq.beat.garbage import leave_to_loop
from cronq.beat.loop import BeatLoop, Upkeep
from cronq.beat.planning import Planning
from cronq.beat.publishing import Publishing
from cronq.beat.zone_data import follow_zone_data
from cronq.clock import Sighting, StoreClock, sight
from cronq.coordination.leadership import Leadership
from cronq.coordination.lock import LeaderLock
from cronq.coordination.notices import RELEASED, listen_for_notices
from cronq.coordination.redis_client import RedisError, open_redis
from cronq.coordination.roll_call import RollCall, slots_by_queue
from cronq.delivery.dead_letter_queue import DeadLetterQueue
from cronq.delivery.progress_event import ProgressEvents
from cronq.delivery.publisher import open_publisher
from cronq.delivery.quarantine import drop_malformed, read_malformed
from cronq.progress.board import Board
from cronq.settings import Settings, load_settings
from cronq.store.database import Database
from cronq.store.delays import set_next_by_delay
from cronq.store.limits import write_limits
from cronq.store.schema import require_schema
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger
from cronq.upkeep.backfiller import Backfiller
from cronq.upkeep.batch_keeper import BatchKeeper
from cronq.upkeep.dead_letter_keeper import DeadLetterKeeper
from cronq.upkeep.dependency_resolver import DependencyResolver
from cronq.upkeep.failure_watcher import FailureWatcher
from cronq.upkeep.job_pruner import JobPruner
from cronq.upkeep.job_rescuer import JobRescuer
from cronq.upkeep.place_keeper import PlaceKeeper
from cronq.upkeep.publish_reconciler import PublishReconciler
from cronq.worker.desk import StoreDesk

log = get_logger(__name__)


@dataclass
class Cronq:
    """The parts of one process, each built when it is first asked for. Not shared across a fork."""

    app: Celery
    settings: Settings

    @cached_property
    def database(self) -> Database:
        """The authority."""
        return Database(self.settings.database_url)

    @cached_property
    def redis(self) -> redis.Redis:
        """The client for everything that may be lost."""
        return open_redis(self.settings.redis_url)

    @cached_property
    def board(self) -> Board:
        """Live progress."""
        return Board(self.redis, prefix=self.settings.key_prefix, ttl_s=self.settings.progress_ttl_s)

    @cached_property
    def beats(self) -> RollCall:
        """The beats that are alive."""
        return RollCall(self.redis, prefix=self.settings.key_prefix, kind="beat")

    @cached_property
    def workers(self) -> RollCall:
        """The workers whose event loop turns."""
        return RollCall(self.redis, prefix=self.settings.key_prefix, kind="worker")

    @cached_property
    def desk(self) -> StoreDesk:
        """Where this process's attempts get their leases."""
        hostname = senders_of_events.get(id(self.app))
        events = None if hostname is None else ProgressEvents(self.app, hostname)
        return StoreDesk(self.database, self.redis, self.board, self.settings, events)

    def build_beat(self) -> "Beat":
        """Build one beat; it does nothing until `start`."""
        require_schema(self.database)
        return Beat(self)

    def sight_clocks(self) -> Sighting:
        """Ask both stores what time it is."""
        return sight(ask_sql=lambda: self.database.clock().timestamp(), ask_redis=self._redis_time)

    def _redis_time(self) -> float:
        seconds, micros = self.redis.time()
        return float(seconds) + float(micros) / 1e6


class Beat:
    """One beat process: its loop, its leadership, its ear for notices."""

    def __init__(self, cronq: Cronq) -> None:
        settings = cronq.settings
        self._cronq = cronq
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._holder = f"{self._host}:{self._pid}:{secrets.token_hex(4)}"[-64:]
        self._started_at = cronq.database.clock()  # not this machine's: deploys are compared
        self.clock = StoreClock()
        self._publisher = open_publisher(
            cronq.app, flower_names=settings.flower_names, max_payload_bytes=settings.max_payload_bytes
        )
        lock_client = open_redis(settings.redis_url, timeout_s=max(0.2, settings.lock_s / 3))
        self._board = RollCall(lock_client, prefix=settings.key_prefix, kind="beat")
        # By this client a Redis that does not answer costs the loop a moment, not a second.
        self._workers = RollCall(lock_client, prefix=settings.key_prefix, kind="worker")
        self.leadership = self._build_leadership(lock_client)
        self._rescuer = JobRescuer(cronq.database, settings)
        self._rescuer.let_renew()  # SQL may have been away until a moment ago: this beat saw nothing of it
        self.loop = BeatLoop(
            settings=settings,
            database=cronq.database,
            leadership=self.leadership,
            planning=Planning(settings, cronq.database, self.clock, shard=0),
            publishing=Publishing(cronq.database, self._publisher, self.clock, self._offers),
            clock=self.clock,
            sight=self._sight_clocks,
            begin_term=self._take_over,
            upkeep=self._build_upkeep(),
        )
        self._listener = listen_for_notices(
            open_redis(settings.redis_url), settings.key_prefix, self._take_notice
        )
        self._dead_letters = DeadLetterKeeper(
            cronq.database,
            DeadLetterQueue(cronq.app, f"{settings.key_prefix.rstrip(':') or 'cronq'}.dead"),
            leads=lambda: self.leadership.current() is not None,
            read_malformed=lambda: read_malformed(cronq.redis, settings.key_prefix),
            drop_malformed=lambda: drop_malformed(cronq.redis, settings.key_prefix),
        )

    def _build_leadership(self, client: redis.Redis) -> Leadership:
        settings = self._cronq.settings
        return Leadership(
            lock=LeaderLock(
                client, prefix=settings.key_prefix, shard=0, holder=self._holder, lock_s=settings.lock_s
            ),
            # A database of its own: the main loop may hold every pooled connection while it plans.
            database=Database(settings.database_url, pool_size=1),
            shard=0,
            host=self._host,
            pid=self._pid,
            lock_s=settings.lock_s,
            standby_poll_s=settings.standby_poll_s,
            on_change=self._wake,
            on_beat=self._tell_board,
        )

    def _build_upkeep(self) -> list[Upkeep]:
        settings, database = self._cronq.settings, self._cronq.database
        reconciler = PublishReconciler(database, settings, self._publisher)
        resolver = DependencyResolver(database, self._tell_loop)
        return [
            Upkeep("job_rescuer", 0.5, self._rescuer.run),
            Upkeep("publish_reconciler", settings.republish_s / 4, reconciler.run),
            Upkeep("delay_planner", 1.0, self._plan_delays, after_ends=True),
            Upkeep("failure_watcher", 1.0, FailureWatcher(database, self._drop_schedule).run),
            Upkeep("backfiller", 1.0, Backfiller(database, self._look).run, after_ends=True),
            Upkeep("job_pruner", 1.0, JobPruner(database, settings.keep_jobs_s).run),
            Upkeep("place_keeper", 2.0, PlaceKeeper(database, self._offers).run),
            Upkeep("batch_keeper", 1.0, BatchKeeper(database, self._tell_loop).run),
            Upkeep("dependency_resolver", 1.0, resolver.run, after_ends=True),
        ]

    def start(self) -> None:
        """Begin to compete for leadership, and to listen."""
        leave_to_loop()
        self._listener.start()
        self._dead_letters.start()
        self.leadership.start()

    def stop(self) -> None:
        """Release the lock. May be called from a signal handler, in the middle of a step, and twice."""
        self._listener.stop()
        self._dead_letters.stop()
        self.leadership.stop()

    def _sight_clocks(self) -> Sighting:
        seen = self._cronq.sight_clocks()
        if seen.sql is not None:
            self._rescuer.saw_sql()
        return seen

    def _take_notice(self, notice: dict[str, Any]) -> None:
        if notice.get("kind") == RELEASED:
            self.leadership.look()
        else:
            self.loop.notice(notice)

    def _wake(self) -> None:
        self.loop.wake.set()

    def _take_over(self, term: Term) -> None:
        cronq, source = self._cronq, f"code:{self._cronq.app.main or 'app'}"
        newest = take_over(
            cronq.database,
            collect(cronq.app, max_payload_bytes=cronq.settings.max_payload_bytes),
            term=term,
            source=source,
            stamp=cronq.settings.deploy or self._started_at.isoformat(),
            now=self.clock.now(),
        )
        if newest:
            self._declare_limits(term, source)
        follow_zone_data(cronq.database, term=term, now=self.clock.now())

    def _declare_limits(self, term: Term, source: str) -> None:
        for key in write_limits(self._cronq.database, self._cronq.settings.limits, term=term, source=source):
            log.error(
                "limit.refused", key=key, error="another app declares it", consequence="that one counts"
            )

    def _offers(self) -> dict[str, int] | None:
        try:
            return slots_by_queue(self._workers.read())
        except RedisError:
            return None

    def _tell_loop(self, notice: dict[str, Any]) -> None:
        self.loop.notice(notice)

    def _plan_delays(self, term: Term) -> None:
        if set_next_by_delay(self._cronq.database, term.shard):
            self._look()

    def _drop_schedule(self, schedule_id: str) -> None:
        self.loop.notice({"kind": "schedule", "schedule_id": schedule_id})

    def _look(self) -> None:
        self.loop.notice({"kind": "planned"})

    def _tell_board(self, leads: bool) -> None:
        self._board.tell(
            self._holder,
            host=self._host,
            pid=self._pid,
            leads=leads,
            clock_offset_s=round(self.clock.wall_offset(), 3),
            routes=self._publisher.routes() if leads else {},
        )


_parts: dict[tuple[int, int], Cronq] = {}
_parts_lock = threading.Lock()
senders_of_events: dict[int, str] = {}
"""Apps whose worker sends task events, and its name; its children inherit this."""


def cronq_of(app: Celery) -> Cronq:
    """Return this process's parts for `app`, built on the first call (and again in a forked child)."""
    key = (os.getpid(), id(app))
    with _parts_lock:
        if key not in _parts:
            _parts[key] = Cronq(app, load_settings(app.conf))
        return _parts[key]


def configure(app: Celery) -> Celery:
    """Set Celery up for cronq, and return `app`: the broker from `CRONQ_BROKER_URL`, JSON only, events on."""
    settings = load_settings()
    if settings.broker_url is not None:
        app.conf.broker_url = settings.broker_url
    elif not app.conf.broker_url:
        app.conf.broker_url = settings.redis_url
    app.conf.update(
        cronq_configured=True,
        accept_content=["json"],
        # RabbitMQ closes the channel of a worker that keeps a message behind a long job.
        broker_channel_error_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_heartbeat=10,
        enable_utc=True,
        task_create_missing_queue_type=settings.queue_type,
        task_default_queue_type=settings.queue_type,
        task_serializer="json",
        task_track_started=True,
        worker_send_task_events=True,
    )
    return app
