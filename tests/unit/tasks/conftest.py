"""Folders of its own for each test of the reference work, and the orders made once."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cronq.context import JobContext, running
from cronq.progress.reporter import Report, reporting
from tasks.orders import make_orders

FIRE_TIME = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("orders") / "orders.sqlite"
    make_orders(path)
    return path


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, orders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRONQ_ORDERS_PATH", str(orders))
    monkeypatch.setenv("CRONQ_REPORTS_DIR", str(tmp_path / "reports"))
    monkeypatch.setenv("VIDEOS_DIR", str(tmp_path / "videos"))
    return tmp_path


@contextmanager
def job(fire_time: datetime | None = FIRE_TIME, attempt: int = 1) -> Iterator[list[dict[str, object]]]:
    """Run as the body of a job; gives the progress that it reported."""
    seen: list[dict[str, object]] = []
    report = Report("job-1", attempt, interval_s=0, send=lambda one: seen.append(one.state()))
    context = JobContext(
        id="job-1", task="t", attempt=attempt, max_attempts=3, schedule=None, fire_time=fire_time, tenant=None
    )
    here, reported = running.set(context), reporting.set(report)
    try:
        yield seen
    finally:
        running.reset(here)
        reporting.reset(reported)
