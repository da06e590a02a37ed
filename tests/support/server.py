"""What every test server is: a folder and a port of its own, a main process, readiness, faults."""

import contextlib
import os
import random
import shutil
import socket
import tempfile
from pathlib import Path
from typing import ClassVar, Self

from .processes import Process, wait_for

READY_TIMEOUT = 60.0


class ServerMissing(Exception):
    """A server's program is not on this machine."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} is not installed; on Debian: apt-get install {package}")


def find_program(name: str, package: str, *folders: Path) -> Path:
    path = os.pathsep.join([*(str(folder) for folder in folders), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        raise ServerMissing(name, package)
    return Path(found)


def free_port() -> int:
    """Below the kernel's range for outgoing connections, so that nobody takes it during a restart."""
    while True:
        port = random.randint(18_000, 31_999)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """One server; subclasses say how it starts and how it is asked whether it is ready."""

    name: ClassVar[str]
    user: str | None = None

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"cronq-test-{self.name}-"))
        self._process: Process | None = None

    @property
    def url(self) -> str:
        raise NotImplementedError

    @property
    def process(self) -> Process:
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> Self:
        if self._process is None:
            self._process = self._make_process()
        self._before_start()
        self.process.start()
        self.wait_ready()
        return self

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def ensure_running(self) -> None:
        """Undo what the test before may have done to a server that the whole session shares."""
        if self._process is not None:
            self.process.resume()
        if self._process is None or not self.process.running:
            self.start()

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        def answers() -> bool:
            assert self.process.running, f"{self.name} did not start:\n{self.process.tail()}"
            self._ask()
            return True

        wait_for(answers, timeout, f"{self.name} on port {self.port}", ignoring=self._not_ready)

    def close(self) -> None:
        if self._process is not None:
            self.process.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    _not_ready: ClassVar[tuple[type[Exception], ...]] = ()

    def _make_process(self) -> Process:
        raise NotImplementedError

    def _before_start(self) -> None:
        pass

    def _ask(self) -> None:
        raise NotImplementedError
