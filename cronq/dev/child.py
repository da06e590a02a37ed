"""One process of the stack: started in a session of its own, logging to a file, ended with its parent."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class Child:
    """A process that does not outlive the stack."""

    def __init__(self, name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self.name, self.command, self.log = name, list(command), log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands
                self.command,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the stack, which stops its children in order
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - one system call, nothing that could deadlock
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return how it ended, or None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to stop."""
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; tell whether it came."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def trim_log(self, limit: int) -> None:
        """Begin its log anew once it has more than `limit` bytes; what was there stands in `….log.1`.

        The child goes on writing: it appends, so it begins at the new start. A line that it writes between
        the copy and the cut is lost.
        """
        if self.log.exists() and self.log.stat().st_size > limit:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)

    def last_words(self, lines: int = 8) -> str:
        """Return the end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.strip().splitlines()[-lines:])


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
