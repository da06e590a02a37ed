"""Servers that are killed, restarted, emptied, frozen, full or set back."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from sqlalchemy import create_engine

from tests.faults.bench.catalogue.kinds import KINDS, Kind, kind
from tests.faults.bench.injector import Injector
from tests.faults.bench.installation import WORKERS
from tests.faults.bench.small_disk import may_mount
from tests.faults.bench.timings import LEASE_S
from tests.support.servers import PostgreSQLServer

DOWN_S = 2.0
LONG_DOWN_S = LEASE_S + 2.0
FROZEN_S = 3.0
FULL_S = LEASE_S + 2.0
OUT_OF_DISK = "postgresql out of disk"


def _down(injector: Injector, seconds: float, end: Callable[[], object], start: Callable[[], object]) -> None:
    end()
    injector.wait(seconds)
    start()


@kind("redis killed")
def redis_killed(injector: Injector) -> None:
    redis = injector.installation.redis
    with injector.fault("redis killed"):
        _down(injector, DOWN_S, redis.kill, redis.start)


@kind("redis killed and emptied")
def redis_killed_and_emptied(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("redis killed and emptied"):
        _down(injector, DOWN_S, at.redis.kill, at.lose_redis_data)
        at.redis.start()


@kind("redis set back")
def redis_set_back(injector: Injector) -> None:
    """It comes back as it was some seconds ago: a stale volume, or a replica that was behind."""
    redis = injector.installation.redis
    now, then = redis.folder / "appendonlydir", redis.folder / "then"
    shutil.rmtree(then, ignore_errors=True)
    shutil.copytree(now, then)
    injector.wait(3.0)
    with injector.fault("redis set back"):
        redis.kill()
        shutil.rmtree(now)
        shutil.copytree(then, now)
        redis.start()


@kind("redis emptied")
def redis_emptied(injector: Injector) -> None:
    with injector.fault("redis emptied"), injector.installation.redis.client() as client:
        client.flushall()


@kind("redis emptied while messages wait", broker="redis")
def redis_emptied_while_messages_wait(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("redis emptied while messages wait", hurt=frozenset(WORKERS)), ExitStack() as stack:
        for name in WORKERS:
            stack.enter_context(injector.frozen(name))
        injector.wait(1.5)
        with at.redis.client() as client:
            client.flushall()


@kind("redis frozen")
def redis_frozen(injector: Injector) -> None:
    redis = injector.installation.redis
    with injector.fault("redis frozen"):
        _down(injector, FROZEN_S, redis.pause, redis.resume)


@kind("rabbitmq restarted", broker="rabbitmq")
def rabbitmq_restarted(injector: Injector) -> None:
    with injector.fault("rabbitmq restarted"):
        injector.installation.rabbitmq.restart()


@kind("rabbitmq killed", broker="rabbitmq")
def rabbitmq_killed(injector: Injector) -> None:
    rabbitmq = injector.installation.rabbitmq
    with injector.fault("rabbitmq killed"):
        rabbitmq.kill()
        rabbitmq.start()


@kind("rabbitmq memory alarm", broker="rabbitmq")
def rabbitmq_memory_alarm(injector: Injector) -> None:
    rabbitmq = injector.installation.rabbitmq
    with injector.fault("rabbitmq memory alarm"):
        rabbitmq.ctl("set_vm_memory_high_watermark", "0.00001")
        injector.wait(FROZEN_S)
        rabbitmq.ctl("set_vm_memory_high_watermark", "0.4")


@kind("postgresql restarted", database="postgresql")
def postgresql_restarted(injector: Injector) -> None:
    with injector.fault("postgresql restarted"):
        injector.installation.postgresql.restart()


@kind("postgresql killed for longer than a lease", database="postgresql")
def postgresql_killed(injector: Injector) -> None:
    postgresql = injector.installation.postgresql
    # It forgets the claims of its last moments, which it did not have to write to the disk: those run again.
    with injector.fault("postgresql killed for longer than a lease", hurt=frozenset(WORKERS)):
        _down(injector, LONG_DOWN_S, postgresql.kill, postgresql.start)


@kind("postgresql frozen", database="postgresql")
def postgresql_frozen(injector: Injector) -> None:
    postgresql = injector.installation.postgresql
    with injector.fault("postgresql frozen"):
        _down(injector, FROZEN_S, postgresql.pause, postgresql.resume)


@kind("postgresql connections cut", database="postgresql")
def postgresql_connections_cut(injector: Injector) -> None:
    with injector.fault("postgresql connections cut"):
        injector.installation.postgresql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        )


@kind("postgresql read-only", database="postgresql")
def postgresql_read_only(injector: Injector) -> None:
    execute = injector.installation.postgresql.execute
    with injector.fault("postgresql read-only"):
        execute("ALTER SYSTEM SET default_transaction_read_only = on")
        execute("SELECT pg_reload_conf()")
        injector.wait(DOWN_S)
        execute("ALTER SYSTEM RESET default_transaction_read_only")
        execute("SELECT pg_reload_conf()")


def postgresql_out_of_disk(injector: Injector) -> None:
    """It refuses what needs room, and ends when its log does; somebody makes room and starts it again."""
    postgresql = injector.installation.postgresql
    said = postgresql.complaints
    # What it forgets when it ends: see above.
    with injector.fault(OUT_OF_DISK, hurt=frozenset(WORKERS)):
        with postgresql.full():
            injector.wait(FULL_S)
        _revive(postgresql)
    assert postgresql.complaints > said, "the disk was full, and PostgreSQL did not need it"


def _revive(postgresql: PostgreSQLServer) -> None:
    """Start it again if it ended, or ends now because it could not recover while the disk was full."""
    try:
        postgresql.ensure_running()
        postgresql.wait_ready()
    except AssertionError:
        postgresql.start()


if may_mount():
    KINDS[OUT_OF_DISK] = Kind(OUT_OF_DISK, postgresql_out_of_disk, database="postgresql")


@contextmanager
def _sqlite_locked(url: str) -> Iterator[None]:
    engine = create_engine(url, connect_args={"timeout": 10})
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
        connection.exec_driver_sql("ROLLBACK")
    engine.dispose()


@kind("sqlite locked for longer than a lease", database="sqlite")
def sqlite_locked(injector: Injector) -> None:
    with (
        injector.fault("sqlite locked for longer than a lease"),
        _sqlite_locked(injector.installation.database_url),
    ):
        injector.wait(LONG_DOWN_S)


@kind("schedules set back")
def schedules_set_back(injector: Injector) -> None:
    """The next fire times go back by some seconds: an operator's mistake, or a restored table."""
    rows = injector.installation.query(
        "SELECT id, next_fire_at FROM cronq_schedule WHERE next_fire_at IS NOT NULL"
    )
    shift = (
        "next_fire_at - interval '90 seconds'"
        if injector.installation.kind == "postgresql"
        else "strftime('%Y-%m-%d %H:%M:%f000', next_fire_at, '-90 seconds')"
    )
    assert rows
    with injector.fault("schedules set back"):
        injector.installation.query(f"UPDATE cronq_schedule SET next_fire_at = {shift}")
