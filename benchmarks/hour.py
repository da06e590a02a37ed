"""Look for what grows while the whole deployment runs: `python -m benchmarks.hour`.

Starts `make run`, looks each minute at every process, the disk and the jobs, and writes a table. Needs
nothing but what `make run` installs, and Linux's /proc.
"""

import argparse
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

STARTS_S = 180.0
"""Patience until the stack is up: the first time it is installed before."""
NAMES = {
    "cronq up": "up",
    "valkey": "redis",
    "redis-server": "redis",
    " beat ": "beat",
    " worker ": "worker",
    "cronq api": "api",
    " flower ": "flower",
    "tasks.payment_service": "payments",
    "tasks.api": "reports",
}
"""What a process is called here, by a part of its command; the first that fits."""
COLUMNS = ("up", "redis", "beat", "worker", "api", "flower", "payments", "reports")
MIB = 1024 * 1024


def main() -> None:
    """Run it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("hour.md"))
    options = parser.parse_args()
    with Path("make-run.log").open("wb") as log:
        run = subprocess.Popen(["make", "run"], stdout=log, stderr=log, start_new_session=True)
        try:
            _watch(run, options.minutes, options.out)
        finally:
            for pid in [pid for pid, name in _family(run.pid) if name == "up"]:
                os.kill(pid, signal.SIGTERM)  # Ctrl-C is ignored by what was started in the background
            run.wait(30)


def _watch(run: subprocess.Popen[bytes], minutes: float, out: Path) -> None:
    until = time.monotonic() + STARTS_S
    while not _jobs() and time.monotonic() < until:
        time.sleep(1)
    began = time.monotonic()
    with out.open("w") as table:
        heads = ["minute", *(f"{name} MiB" for name in COLUMNS), "threads+files", "data kB", ".cronq kB"]
        heads += ["jobs", "completed", "failed", "running", "late"]
        table.write(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
        while time.monotonic() - began <= minutes * 60 and run.poll() is None:
            table.write(f"| {' | '.join(map(str, _row((time.monotonic() - began) / 60, run.pid)))} |\n")
            table.flush()
            time.sleep(60 - (time.monotonic() - began) % 60)


def _row(minute: float, top: int) -> list[str]:
    sizes = dict.fromkeys(COLUMNS, 0)
    handles = 0
    for pid, name in _family(top):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            handles += len(list(Path(f"/proc/{pid}/fd").iterdir())) + int(_field(status, "Threads"))
            sizes[name] += int(_field(status, "VmRSS").split()[0])
        except (OSError, KeyError):
            continue  # it has just ended, or is not one of the deployment
    jobs = _jobs()
    late = jobs.pop("late", 0)
    cells = [f"{minute:.0f}", *(f"{sizes[name] / 1024:.0f}" for name in COLUMNS), str(handles)]
    cells += [f"{_disk(Path('data')) / 1024:.0f}", f"{_disk(Path('.cronq')) / 1024:.0f}"]
    return [
        *cells,
        str(sum(jobs.values())),
        *(str(jobs.get(each, 0)) for each in ("COMPLETED", "FAILED", "RUNNING")),
        str(late),
    ]


def _family(top: int) -> list[tuple[int, str]]:
    """Return (process id, what it is) of the deployment's processes."""
    parents, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            names[int(folder.name)] = next((name for part, name in NAMES.items() if part in words), "")
    found, fresh = [], {top}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh}
        found += [(pid, names[pid]) for pid in sorted(fresh)]
    return found


def _field(status: str, name: str) -> str:
    return dict(line.split(":", 1) for line in status.splitlines() if ":" in line)[name].strip()


def _disk(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk, in blocks."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue  # deleted meanwhile
    return total


def _jobs() -> dict[str, int]:
    """Return how many jobs are in each state, and how many are late: due for five seconds and not begun."""
    path = Path(".cronq/cronq.db")
    if not path.exists():
        return {}
    late = """
        SELECT count(*) FROM cronq_job WHERE state IN ('SCHEDULED', 'PENDING', 'RETRYING')
        AND due_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', '-5 seconds')
    """
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as jobs:
            counts = dict(jobs.execute("SELECT state, count(*) FROM cronq_job GROUP BY state").fetchall())
            return {**counts, "late": jobs.execute(late).fetchone()[0]} if counts else {}
    except sqlite3.OperationalError:
        return {}


if __name__ == "__main__":
    main()
