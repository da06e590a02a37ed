"""A PostgreSQL whose disk is small and of its own, so that it can be filled: a file system in memory."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tests.support.servers import PostgreSQLServer

SIZE_MB = 512
FILLER, BLOCK = "filler", bytes(1 << 20)


def _mount(folder: str, size_mb: int) -> None:
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0755", "tmpfs", folder]
    subprocess.run(argv, check=True, capture_output=True)


def _unmount(folder: str) -> None:
    subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


@cache
def may_mount() -> bool:
    """Tell whether this process may mount a file system: root may, outside of most containers."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="cronq-mount-") as folder:
        try:
            _mount(folder, 1)
        except (OSError, subprocess.CalledProcessError):
            return False
        _unmount(folder)
    return True


class SmallDiskPostgreSQL(PostgreSQLServer):
    """Its log of changes comes in pieces of 1 MiB, so that it needs a new one every few seconds."""

    initdb_args = ("--wal-segsize=1",)
    settings = PostgreSQLServer.settings | {"min_wal_size": "2MB", "max_wal_size": "8MB"}

    def __init__(self) -> None:
        super().__init__()
        self.disk = self.folder / "data"  # its log is elsewhere, and says what happened
        self.disk.mkdir()
        _mount(str(self.disk), SIZE_MB)
        os.chown(self.disk, self.folder.stat().st_uid, -1)

    def close(self) -> None:
        self.process.close()
        _unmount(str(self.disk))
        super().close()

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room on its disk until the end of the block."""
        filler = self.disk / FILLER
        try:
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(BLOCK)
            yield
        finally:
            filler.unlink()

    @property
    def complaints(self) -> int:
        """How often it said so far that the disk is full."""
        return self.process.output().count("No space left on device")
