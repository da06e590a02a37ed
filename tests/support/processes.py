"""Child processes of a test: started, signalled, waited for, and gone when the test is."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil

ROOT = Path(__file__).resolve().parents[2]
POLL_INTERVAL = 0.02
TAIL_LINES = 25
PR_SET_PDEATHSIG = 1

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_alive: "weakref.WeakSet[Process]" = weakref.WeakSet()


def die_with_parent() -> None:
    """Run in the child before exec: a killed pytest must leave nothing behind.

    The kernel counts from the *thread* that forked, so start processes from the main thread.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One child process in its own process group, with its output in a file."""

    stop_signal: signal.Signals = signal.SIGTERM

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.argv = [str(word) for word in argv]
        self.log = log
        self.env = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        self.cwd = cwd
        self.user = user
        self._popen: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._paused: list[psutil.Process] = []

    @property
    def pid(self) -> int:
        assert self._popen is not None, f"{self.name} was never started"
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def returncode(self) -> int | None:
        return None if self._popen is None else self._popen.poll()

    def start(self) -> Self:
        assert not self.running, f"{self.name} is running already"
        as_user: dict[str, Any] = {"user": self.user, "extra_groups": []} if self.user else {}
        with self.log.open("ab") as out:
            self._log_start = out.tell()
            self._popen = subprocess.Popen(
                self.argv,
                cwd=self.cwd,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one libc call, loaded before the fork
                **as_user,
            )
        _alive.add(self)
        return self

    def signal(self, signum: int) -> None:
        """Signal the process itself and none of its children."""
        if self.running:
            os.kill(self.pid, signum)

    def stop(self, timeout: float = 15) -> int | None:
        """Ask it to end as an operator would; what is still there after the time-out is killed."""
        if not self.running:
            return self.returncode
        self.resume()
        family = self.tree()
        self.signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert self._popen is not None
            self._popen.wait(timeout)
        self._end(family)
        return self.returncode

    def kill(self) -> None:
        """SIGKILL to the process and all that it started, as when a container or a machine dies."""
        if self._popen is not None:
            self._end(self.tree())

    def pause(self) -> None:
        """SIGSTOP the whole tree: alive for the operating system, dead for everyone who waits for it."""
        self._paused = self.tree()
        _signal_each(self._paused, signal.SIGSTOP)
        # The signal is only sent: a process on another core runs on for a moment.
        wait_for(lambda: all(map(_stopped_or_gone, self._paused)), 10, f"{self.name} to stand still")

    def resume(self) -> None:
        _signal_each(self._paused, signal.SIGCONT)
        self._paused = []

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def wait(self, timeout: float) -> int:
        """Wait for it to end by itself."""
        wait_for(lambda: not self.running, timeout, f"{self.name} to end")
        assert self.returncode is not None
        return self.returncode

    def tree(self) -> list[psutil.Process]:
        """Itself first, then every descendant, those in a process group of their own too."""
        if not self.running:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.pid)
            return [top, *top.children(recursive=True)]
        return []

    def output(self) -> str:
        """All that it wrote, earlier starts included."""
        return self.log.read_bytes().decode(errors="replace") if self.log.exists() else ""

    def new_output(self) -> str:
        """What it wrote since its last start."""
        return self.log.read_bytes()[self._log_start :].decode(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = TAIL_LINES) -> str:
        state = "running" if self.running else f"ended with {self.returncode}"
        body = "\n".join(f"    {line}" for line in self.output().splitlines()[-lines:])
        return f"  {self.name} ({state}), {self.log}:\n{body}"

    def close(self) -> None:
        self.stop()
        _alive.discard(self)

    def _end(self, family: list[psutil.Process]) -> None:
        # The top goes first, or it would fork replacements for the children it sees dying.
        _signal_each(family, signal.SIGKILL)
        self._paused = []
        assert self._popen is not None
        self._popen.wait(20)
        psutil.wait_procs(family[1:], timeout=20)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class Processes:
    """The processes of one test: started under a name, ended together, last one first."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.env = dict(env or {})
        self._all: list[Process] = []

    def start(self, name: str, *argv: str | Path, env: Mapping[str, str] | None = None) -> Process:
        process = Process(name, argv, log=self.folder / f"{name}.log", env={**self.env, **(env or {})})
        self._all.append(process)
        return process.start()

    def run(
        self, name: str, *argv: str | Path, timeout: float = 30, env: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Run a command to its end and return its exit code and output; it leaves no trace in the tails."""
        command = Process(name, argv, log=self.folder / f"{name}.log", env={**self.env, **(env or {})})
        with command:
            return command.wait(timeout), command.new_output()

    def python(self, name: str, *args: str | Path, env: Mapping[str, str] | None = None) -> Process:
        return self.start(name, sys.executable, *args, env=env)

    def celery(self, name: str, app: str, *args: str, env: Mapping[str, str] | None = None) -> Process:
        return self.python(name, "-m", "celery", "-A", app, *args, env=env)

    def beat(self, name: str, app: str = "beat.app", *args: str, **more: Any) -> Process:
        return self.celery(name, app, "beat", "-S", "cronq", "-l", "INFO", *args, **more)

    def worker(self, name: str, app: str = "workers.app", *args: str, **more: Any) -> Process:
        return self.celery(name, app, "worker", "-l", "INFO", "-n", f"{name}@%h", *args, **more)

    def cronq(self, name: str, *args: str, env: Mapping[str, str] | None = None) -> Process:
        return self.start(name, Path(sys.executable).with_name("cronq"), *args, env=env)

    def close(self) -> None:
        for process in reversed(self._all):
            process.close()

    def tails(self) -> str:
        return "\n".join(process.tail() for process in self._all)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_for(
    predicate: Callable[[], T],
    timeout: float,
    what: str,
    *,
    ignoring: type[Exception] | tuple[type[Exception], ...] = (),
) -> T:
    """Ask until the answer is true and return it; the only way for a test to wait.

    A predicate that raises one of `ignoring` has not answered yet.
    """
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            last = answer = predicate()
        except ignoring as error:
            last = error
        else:
            if answer:
                return answer
        if time.monotonic() >= deadline:
            raise AssertionError(_too_late(what, timeout, last))
        time.sleep(POLL_INTERVAL)


def _too_late(what: str, timeout: float, last: object) -> str:
    tails = [process.tail() for process in sorted(_alive, key=lambda one: one.name)]
    return "\n".join([f"waited {timeout:g} s for {what}; the last answer was {last!r}", *tails])


def _stopped_or_gone(one: psutil.Process) -> bool:
    try:
        return one.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _signal_each(family: Iterable[psutil.Process], signum: signal.Signals) -> None:
    for one in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(signum)
