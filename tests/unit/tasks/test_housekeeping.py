import gzip
import os
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks import housekeeping
from tasks.housekeeping import (
    archive_logs,
    delete_expired_sessions,
    delete_old_logs,
    open_shop,
    purge_deleted_customers,
)

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PATH", str(tmp_path / "shop.sqlite"))
    monkeypatch.setenv("LOGS_DIR", str(tmp_path / "logs"))
    monkeypatch.setattr(housekeeping, "BATCH", 3)


def left(table: str) -> set[str]:
    with closing(open_shop()) as shop:
        return {row[0] for row in shop.execute(f"SELECT id FROM {table}")}


def test_expired_sessions_go_in_small_batches_and_live_ones_stay() -> None:
    with closing(open_shop()) as shop:
        for n in range(10):
            shop.execute(
                "INSERT INTO session VALUES (?, ?)", (f"old-{n}", (NOW - timedelta(n + 1)).isoformat())
            )
        shop.execute("INSERT INTO session VALUES ('live', ?)", ((NOW + timedelta(1)).isoformat(),))
    assert delete_expired_sessions() == {"deleted": 10}
    assert left("session") == {"live"}
    assert delete_expired_sessions() == {"deleted": 0}


def test_customers_go_thirty_days_after_they_were_marked() -> None:
    with closing(open_shop()) as shop:
        for name, deleted in (("long ago", 31), ("lately", 29), ("here", None)):
            at = None if deleted is None else (NOW - timedelta(deleted)).isoformat()
            shop.execute("INSERT INTO customer VALUES (?, ?)", (name, at))
    assert purge_deleted_customers() == {"deleted": 1}
    assert left("customer") == {"lately", "here"}


def test_old_logs_go_and_nothing_else(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    then = time.time() - 7200
    for name in ("a.log", "a.log.1", "b.txt", "new.log"):
        (logs / name).write_text("12345")
        if name != "new.log":
            os.utime(logs / name, (then, then))
    elsewhere = tmp_path / "elsewhere.log"
    elsewhere.write_text("12345")
    os.utime(elsewhere, (then, then))
    (logs / "link.log").symlink_to(elsewhere)
    assert delete_old_logs(3600) == {"deleted": 2, "freed_bytes": 10}
    assert {path.name for path in logs.iterdir()} == {"b.txt", "new.log", "link.log"}
    assert elsewhere.exists()


def test_old_logs_are_compressed_once_and_go_when_their_own_time_is_over(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("x" * 10_000)
    (logs / "new.log").write_text("x")
    then = time.time() - 7200
    os.utime(logs / "a.log", (then, then))
    assert archive_logs(3600)["archived"] == 1
    assert archive_logs(3600)["archived"] == 0
    assert {path.name for path in logs.iterdir()} == {"a.log.gz", "new.log"}
    assert gzip.decompress((logs / "a.log.gz").read_bytes()) == b"x" * 10_000
    assert delete_old_logs(3600)["deleted"] == 1
    assert {path.name for path in logs.iterdir()} == {"new.log"}


def test_where_there_is_nothing_nothing_is_deleted() -> None:
    assert delete_old_logs(0) == {"deleted": 0, "freed_bytes": 0}
    assert delete_expired_sessions() == {"deleted": 0}
