"""Nightly maintenance of git repositories: collect garbage, pack, tidy refs; flag what cannot be mended.

One at a time and repository: a lock of the repository and the day, and a mark that the day is done, make a
second run harmless, whoever asked for it. After three failures in a row a repository is flagged, and left
alone until a person has looked and removed the flag.
"""

import fcntl
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from celery import shared_task

from cronq import Permanent, current_job, progress
from tasks.files import write_atomically

STEPS: Final = (
    ("look for damage", ("fsck", "--full", "--no-dangling", "--no-progress")),
    ("tidy the refs", ("pack-refs", "--all", "--prune")),
    ("collect garbage", ("gc", "--quiet")),
    ("write the commit graph", ("commit-graph", "write", "--reachable")),
)
FAILURES_IN_A_ROW: Final = 3
KEEP_MARKS: Final = timedelta(days=7)
"""How long the mark stays that a day is done, and the day's lock."""
PAUSE_S: Final = 0.1
"""Seconds between one repository and the next of a worker's slot, and as much again by chance."""


class RepositoryDamaged(RuntimeError):
    """git could not do its work; the message ends with what it said."""


def repositories() -> Iterator[str]:
    """Yield the repositories to look after: one job each. Flagged ones wait for a person."""
    for folder in sorted(_dir().iterdir()):
        if _is_repository(folder) and not _state(folder.name, "flagged.json").exists():
            yield folder.name


@shared_task(name="tasks.maintain_repository")  # type: ignore[untyped-decorator]
def maintain_repository(name: str) -> dict[str, Any]:
    """Maintain one repository, unless that is done for the day; then pause."""
    folder = _dir() / name
    if "/" in name or not _is_repository(folder):
        raise Permanent(f"there is no repository {name!r} in {_dir()}")
    job = current_job()
    moment = datetime.now(UTC) if job is None or job.fire_time is None else job.fire_time
    day = moment.strftime("%Y-%m-%d")
    try:
        with locked(name, day):
            done = _state(name, f"{day}.done")
            if done.exists():
                return {"repository": name, "day": day, "already_done": True}
            _maintain(name, folder)
            write_atomically(done, "")
            _forget_before(name, (moment - KEEP_MARKS).strftime("%Y-%m-%d"))
            return {"repository": name, "day": day, "already_done": False}
    finally:
        time.sleep(PAUSE_S + random.uniform(0, PAUSE_S))  # noqa: S311 - spreads load


def _maintain(name: str, folder: Path) -> None:
    failures = _state(name, "failures")
    try:
        for number, (step, command) in enumerate(STEPS):
            progress.update(number, len(STEPS), step)
            _git(folder, *command)
    except RepositoryDamaged as error:
        count = int(failures.read_text()) + 1 if failures.exists() else 1
        write_atomically(failures, str(count))
        job = current_job()
        # A worker that died over it counts as a failure as well.
        out_of_attempts = job is not None and job.attempt >= job.max_attempts
        if count >= FAILURES_IN_A_ROW or out_of_attempts:
            flag = {"repository": name, "failures": count, "error": str(error)}
            write_atomically(_state(name, "flagged.json"), json.dumps(flag, indent=2))
        raise
    failures.unlink(missing_ok=True)
    progress.update(len(STEPS), len(STEPS), "done")


def _forget_before(name: str, day: str) -> None:
    """Remove the marks and locks of the days before."""
    for kind in ("done", "lock"):
        for path in _state(name, "").glob(f"????-??-??.{kind}"):
            if path.stem < day:
                path.unlink(missing_ok=True)


@contextmanager
def locked(name: str, day: str) -> Iterator[None]:
    """Hold the lock of a repository and a day; wait for whoever has it."""
    path = _state(name, f"{day}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        # The system lets go of it when the process ends, however that comes.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _git(folder: Path, *command: str) -> None:
    argv = ["git", "-C", str(folder), *command]
    ran = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    if ran.returncode != 0:
        raise RepositoryDamaged(f"git {command[0]} failed in {folder.name}: {ran.stderr.strip()[-2000:]}")


def _dir() -> Path:
    return Path(os.environ.get("REPOSITORIES_DIR", "data/repositories"))


def _state(name: str, what: str) -> Path:
    return _dir() / ".maintenance" / name / what


def _is_repository(folder: Path) -> bool:
    return (folder / ".git" / "HEAD").is_file() or (folder / "HEAD").is_file()
