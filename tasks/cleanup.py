"""Deletes reports and videos that nobody needs any longer."""

import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from celery import shared_task

from cronq import progress
from tasks.files import reports_dir, videos_dir

SUFFIXES = frozenset({".html", ".csv", ".json"})


@shared_task(name="tasks.delete_old_reports")  # type: ignore[untyped-decorator]
def delete_old_reports(older_than_s: float) -> dict[str, int]:
    """Delete the reports written more than `older_than_s` seconds ago."""
    if older_than_s < 0:
        raise ValueError(f"older_than_s is {older_than_s}: an age cannot be negative")
    limit = time.time() - older_than_s
    deleted = kept = freed = 0
    for path in progress.track(list(reports_in(reports_dir())), step="look at each report"):
        try:
            facts = path.lstat()
            if not stat.S_ISREG(facts.st_mode) or facts.st_mtime > limit:
                kept += 1
                continue
            path.unlink()
        except FileNotFoundError:
            continue  # another worker was faster
        deleted += 1
        freed += facts.st_size
    return {"deleted": deleted, "kept": kept, "freed_bytes": freed}


@shared_task(name="tasks.delete_old_videos")  # type: ignore[untyped-decorator]
def delete_old_videos(older_than_s: float) -> dict[str, int]:
    """Delete the folders of videos that nothing was written into for `older_than_s` seconds."""
    if older_than_s < 0:
        raise ValueError(f"older_than_s is {older_than_s}: an age cannot be negative")
    limit, folder = time.time() - older_than_s, videos_dir()
    deleted = 0
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_dir() and not path.is_symlink() and path.stat().st_mtime <= limit:
            shutil.rmtree(path, ignore_errors=True)
            deleted += 1
    return {"deleted": deleted}


def reports_in(folder: Path) -> Iterator[Path]:
    """Yield `<tenant>/<name>.html` and `.csv`, and the summaries `….json`, below `folder`.

    Never what a link leads to, and nothing of another shape: the folder may be set wrongly.
    """
    if not folder.is_dir():
        return
    for tenant in sorted(folder.iterdir()):
        if tenant.is_dir() and not tenant.is_symlink():
            yield from (path for path in sorted(tenant.iterdir()) if path.suffix in SUFFIXES)
