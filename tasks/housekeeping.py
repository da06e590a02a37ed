"""Deletes what is over: expired sessions, rows that were marked as deleted long ago, old log files.

In small transactions, so that nobody waits for a clean-up; one that is killed goes on the next time.
"""

import gzip
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from celery import shared_task

from cronq import progress
from tasks.databases import open_database
from tasks.files import replacing

BATCH = 500
KEEP_DELETED = timedelta(days=30)
SCHEMA = """
CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, expires_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS session_expires ON session (expires_at);
CREATE TABLE IF NOT EXISTS customer (id TEXT PRIMARY KEY, deleted_at TEXT);
CREATE INDEX IF NOT EXISTS customer_deleted ON customer (deleted_at) WHERE deleted_at IS NOT NULL;
"""


def open_shop() -> sqlite3.Connection:
    """Open the shop's database; each statement is a transaction of its own."""
    return open_database("SHOP_PATH", "shop.sqlite", SCHEMA, isolation_level=None)


@shared_task(name="tasks.delete_expired_sessions")  # type: ignore[untyped-decorator]
def delete_expired_sessions() -> dict[str, int]:
    """Delete the sessions that nobody can use any more."""
    return _delete("session", "expires_at", datetime.now(UTC))


@shared_task(name="tasks.purge_deleted_customers")  # type: ignore[untyped-decorator]
def purge_deleted_customers() -> dict[str, int]:
    """Delete for good the customers that were marked as deleted thirty days ago."""
    return _delete("customer", "deleted_at", datetime.now(UTC) - KEEP_DELETED)


@shared_task(name="tasks.archive_logs")  # type: ignore[untyped-decorator]
def archive_logs(older_than_s: float) -> dict[str, int]:
    """Compress log files that nobody wrote to for so long."""
    archived = saved = 0
    for path, facts in progress.track(list(_logs_before(older_than_s)), step="compress each log"):
        if path.suffix == ".gz":
            continue
        packed = path.with_name(f"{path.name}.gz")
        with replacing(packed) as part:
            with path.open("rb") as plain, gzip.open(part, "wb") as out:
                shutil.copyfileobj(plain, out)
            os.utime(part, (facts.st_atime, facts.st_mtime))  # it is as old as what it holds
        path.unlink(missing_ok=True)
        archived, saved = archived + 1, saved + facts.st_size - packed.stat().st_size
    return {"archived": archived, "saved_bytes": saved}


@shared_task(name="tasks.delete_old_logs")  # type: ignore[untyped-decorator]
def delete_old_logs(older_than_s: float) -> dict[str, int]:
    """Delete log files (`*.log`, `*.log.1`, `*.log.gz`, …) that nobody wrote to for so long."""
    deleted = freed = 0
    for path, facts in progress.track(list(_logs_before(older_than_s)), step="look at each log"):
        path.unlink(missing_ok=True)
        deleted, freed = deleted + 1, freed + facts.st_size
    return {"deleted": deleted, "freed_bytes": freed}


def _logs_before(older_than_s: float) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the log files that nobody wrote to for so long; never what a link leads to."""
    limit = time.time() - older_than_s
    for path in sorted(Path(os.environ.get("LOGS_DIR", "data/logs")).glob("*.log*")):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode) and facts.st_mtime <= limit:
            yield path, facts


def _delete(table: str, column: str, before: datetime) -> dict[str, int]:
    """Delete the rows whose `column` lies before an instant, a batch at a time."""
    statement = f"""
        DELETE FROM {table} WHERE rowid IN (
            SELECT rowid FROM {table} WHERE {column} < ? ORDER BY {column} LIMIT {BATCH}
        )
    """  # noqa: S608 - both names are this module's own
    total = 0
    with closing(open_shop()) as shop:
        while deleted := shop.execute(statement, (before.isoformat(),)).rowcount:
            total += deleted
            progress.log(f"{total} rows of {table} deleted")
    return {"deleted": total}
