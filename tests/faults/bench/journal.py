"""What really happened, as the processes themselves write it down: one short line each, appended to one file.

Instants are those of the machine's monotonic clock: no fault bends it, and all processes share it.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

JOURNAL, NAME = "BENCH_JOURNAL", "BENCH_NAME"
"""Environment: the file, and what the bench calls the process."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line. what: sent (by a beat), taken (a worker got the message), start and end (of a body)."""

    what: str
    job: str
    schedule: str  #: "-": none
    fire_ms: int  #: -1: none
    attempt: int
    process: str
    pid: int
    at: float


_files: dict[int, int] = {}  # by process id: a forked child opens its own


def write(what: str, job: str, schedule: str | None = None, fire_ms: int = -1, attempt: int = 0) -> None:
    """Append one line; a write this short is never torn."""
    pid = os.getpid()
    if pid not in _files:
        _files[pid] = os.open(os.environ[JOURNAL], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    name = os.environ[NAME]
    line = f"{what} {job} {schedule or '-'} {fire_ms} {attempt} {name} {pid} {time.monotonic():.4f}\n"
    os.write(_files[pid], line.encode())


def read(path: Path) -> list[Line]:
    """Return the lines, oldest first."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else ():
        what, job, schedule, fire_ms, attempt, process, pid, at = text.split()
        lines.append(Line(what, job, schedule, int(fire_ms), int(attempt), process, int(pid), float(at)))
    return sorted(lines, key=lambda line: line.at)
