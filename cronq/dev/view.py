"""The live view: who leads, what runs, what just happened. Lines instead, where there is no terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

STATE_STYLE = {
    "COMPLETED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "RETRYING": "yellow",
    "RUNNING": "cyan",
    "SKIPPED": "dim",
    "CANCELLED": "magenta",
}
LATEST = 12


class LiveView:
    """Shows one picture after another; on a pipe, one line for each change."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._console = Console()
        self._urls = urls
        self._live: Live | None = None
        self._seen: dict[str, str] = {}
        self._leader = ""

    def __enter__(self) -> Self:
        for name, url in self._urls.items():
            self._console.print(f"  {name:7} {url}", highlight=False)
        self._console.print("  stop    Ctrl-C\n", highlight=False)
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def tell(self, what: str) -> None:
        """Say something that stays on the screen."""
        self._console.print(what, style="red", highlight=False, markup=False)

    def show(self, leader: str, jobs: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> None:
        """Show who leads and the newest `jobs` (as `job_fields` returns them)."""
        if self._live is not None:
            self._live.update(_picture(leader, jobs, counts))
            return
        if leader != self._leader:
            self._leader = leader
            self._console.print(f"leader  {leader}", highlight=False)
        for job in reversed(jobs):
            if job["status"] not in ("SCHEDULED", "PENDING") and self._seen.get(job["id"]) != job["status"]:
                self._seen[job["id"]] = job["status"]
                self._console.print(_line(job), highlight=False)


def _picture(leader: str, jobs: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> RenderableType:
    summary = "  ".join(f"{state.lower()} {count}" for state, count in sorted(counts.items()))
    running = Table.grid(padding=(0, 2))
    recent = Table.grid(padding=(0, 2))
    for job in jobs:
        style = STATE_STYLE.get(job["status"], "")
        if job["status"] == "RUNNING":
            bar = ProgressBar(total=100, completed=job["progress"], width=30)
            running.add_row(
                Text("▶", style),
                _name(job),
                bar,
                f"{job['progress']:3} %",
                job["metadata"]["current_step"] or "",
            )
    over = [job for job in jobs if job["finished_at"] is not None][:LATEST]
    for job in over:
        style = STATE_STYLE.get(job["status"], "")
        recent.add_row(Text(job["status"], style), _name(job), _took(job), job["reason"] or "")
    return Group(
        Text(f"leader  {leader}", "bold"), Text(f"jobs    {summary}"), Text(""), running, Text(""), recent
    )


def _line(job: Mapping[str, Any]) -> str:
    return f"{job['status']:10} {_name(job)}  {_took(job)}  {job['reason'] or ''}".rstrip()


def _name(job: Mapping[str, Any]) -> str:
    fire_time = job["fire_time"]
    at = "on demand" if fire_time is None else fire_time.strftime("%H:%M:%SZ")
    return f"{job['schedule'] or job['type']} @ {at}"


def _took(job: Mapping[str, Any]) -> str:
    if job["finished_at"] is None or job["started_at"] is None:
        return ""
    return f"{(job['finished_at'] - job['started_at']).total_seconds():.2f} s"
