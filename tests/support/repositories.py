"""Real git repositories with some history, and one that is damaged."""

import os
import subprocess
from pathlib import Path

WHO = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in
       (("NAME", "Someone"), ("EMAIL", "someone@example.org"), ("DATE", "2026-01-01T00:00:00Z"))}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(["git", "-C", folder, *words], env=env, check=True, capture_output=True, text=True)
    return ran.stdout


def make_repository(folder: Path, commits: int = 5) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(commits):
        (folder / f"file-{number}.txt").write_text(f"{folder.name} {number}\n" * 50)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"commit {number}")
        git(folder, "tag", f"v{number}")
    return folder


def damage(folder: Path) -> None:
    """Spoil the newest commit's own object."""
    commit = git(folder, "rev-parse", "HEAD").strip()
    path = folder / ".git" / "objects" / commit[:2] / commit[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:10])


def loose_objects(folder: Path) -> int:
    return int(git(folder, "count-objects").split()[0])
