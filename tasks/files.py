"""Where results go, and how a file is written so that nobody ever reads half of it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path

from cronq import JobContext


def reports_dir() -> Path:
    """Return the folder of the reports."""
    return Path(os.environ.get("CRONQ_REPORTS_DIR", "data/reports"))


def videos_dir() -> Path:
    """Return the folder of the videos."""
    return Path(os.environ.get("VIDEOS_DIR", "data/videos"))


def name_for(job: JobContext | None) -> str:
    """Return a file name that every attempt at `job` shares, so that running twice writes one file."""
    if job is None:
        return "by-hand"
    if job.fire_time is None:
        return job.id
    return job.fire_time.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Lend a temporary file beside `path`; it takes that name at the end, or vanishes with an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=f".part{path.suffix}", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path`, all or nothing."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
