import os
import time
from pathlib import Path

import pytest

from tasks.cleanup import delete_old_reports

HOUR = 3600.0


def put(path: Path, age_s: float, text: str = "12345") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_old_reports_go_and_young_ones_stay(folders: Path) -> None:
    reports = folders / "reports"
    old = [put(reports / "acme" / name, 2 * HOUR) for name in ("a.html", "a.csv")]
    young = put(reports / "wonka" / "b.html", HOUR / 2)
    assert delete_old_reports(HOUR) == {"deleted": 2, "kept": 1, "freed_bytes": 10}
    assert not any(one.exists() for one in old)
    assert young.exists()


def test_what_is_no_report_stays(folders: Path) -> None:
    reports = folders / "reports"
    others = [put(reports / name, 2 * HOUR) for name in ("index.html", "acme/notes.txt", "acme/deep/a.html")]
    assert delete_old_reports(0)["deleted"] == 0
    assert all(one.exists() for one in others)


def test_links_lead_nowhere(folders: Path) -> None:
    reports = folders / "reports"
    outside = put(folders / "precious" / "a.html", 2 * HOUR)
    (reports / "acme").mkdir(parents=True)
    (reports / "linked").symlink_to(outside.parent)
    (reports / "acme" / "b.html").symlink_to(outside)
    assert delete_old_reports(0) == {"deleted": 0, "kept": 1, "freed_bytes": 0}
    assert outside.exists()


def test_no_folder_yet_is_nothing_to_do() -> None:
    assert delete_old_reports(HOUR) == {"deleted": 0, "kept": 0, "freed_bytes": 0}


def test_negative_age_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        delete_old_reports(-1)
