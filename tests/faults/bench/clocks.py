"""Bends the wall clock of one process while it runs; its monotonic clock and its sleeps go on as ever."""

import mmap
import struct
import subprocess
import time
from functools import cache
from pathlib import Path

from tests.support.server import find_program

SOURCE = Path(__file__).with_name("clockshim.c")
FORMAT = "<qqq"  # offset in ns, drift in parts per million, the instant in ns from which it drifts


@cache
def build_shim(folder: Path) -> Path:
    """Compile the library that is loaded before libc."""
    library = folder / "clockshim.so"
    compiler = find_program("cc", "gcc libc6-dev")
    argv = [str(compiler), "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(argv, check=True)
    return library


class WallClock:
    """The wall clock of one process, which the bench may set."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.clock"
        self._path.write_bytes(struct.pack(FORMAT, 0, 0, 0))
        self.env = {"LD_PRELOAD": str(build_shim(folder)), "CLOCKSHIM_FILE": str(self._path)}

    def bend(self, offset_s: float = 0, drift_ppm: int = 0) -> None:
        with self._path.open("r+b") as file, mmap.mmap(file.fileno(), struct.calcsize(FORMAT)) as view:
            view[:] = struct.pack(FORMAT, int(offset_s * 1e9), drift_ppm, time.time_ns())

    def mend(self) -> None:
        self.bend()
