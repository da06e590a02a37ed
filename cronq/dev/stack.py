"""The processes of the stack: two beats, workers, the API, Flower; and their common environment."""

import fcntl
import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cronq.dev.child import Child
from cronq.dev.embedded_redis import start_redis
from cronq.errors import CronqError
from cronq.settings import ENV_FILE, load_settings

STOP_PATIENCE_S = 4.0
FLOWER_TASKS = 5000
"""How many tasks Flower remembers: its own default, a hundred thousand, grows for days."""
LOG_BYTES = 5_000_000
"""How large a log of the stack may be."""


@dataclass(slots=True, kw_only=True)
class StackOptions:
    """What to start."""

    beat_app: str
    worker_app: str
    folder: Path = Path(".cronq")
    api_port: int = 8787
    flower_port: int = 5555
    with_flower: bool = True
    beats: int = 2
    workers: tuple[int, int] = (1, 1)  #: the fewest, and the most
    modules: Sequence[str] = ()  #: of the user's own, each started as `python -m MODULE`


@dataclass
class Stack:
    """Starts everything, and leaves nothing behind."""

    options: StackOptions
    children: list[Child] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    _lock: IO[str] | None = None
    _leaving: list[Child] = field(default_factory=list)  # workers that were asked to stop
    _workers_begun: int = 0

    def start(self) -> None:
        """Start the servers, then everything that needs them. On any trouble nothing is left running."""
        folder = self.options.folder
        folder.mkdir(parents=True, exist_ok=True)
        self._take_folder(folder)
        _require_free_port(self.options.api_port, "--api-port")
        if self.options.with_flower:
            _require_free_port(self.options.flower_port, "--flower-port")
        for log in folder.glob("*.log*"):
            log.unlink()
        self._find_stores(folder)

    def start_processes(self) -> None:
        """Start beats, workers and faces: the schema is up to date by now."""
        for name, command in self._commands():
            self._start(name, command)
        for _ in range(self.options.workers[0]):
            self.start_worker()

    def start_worker(self) -> Child:
        """Start one more worker."""
        self._workers_begun += 1
        name = "worker" if self._workers_begun == 1 else f"worker-{self._workers_begun}"
        options = ("worker", "-E", "-l", "INFO", "-n", f"{name}@%h")
        return self._start(name, self._celery(self.options.worker_app, *options))

    def stop_worker(self) -> Child:
        """Ask the youngest worker to end what it has begun, and go."""
        child = self.workers()[-1]
        self.children.remove(child)
        self._leaving.append(child)
        child.terminate()
        return child

    def workers(self) -> list[Child]:
        """Return the workers that run and are to go on."""
        return [each for each in self.children if each.name.startswith("worker") and each.exit_code() is None]

    def dead(self) -> list[Child]:
        """Return the processes that ended by themselves."""
        self._leaving = [
            child for child in self._leaving if child.exit_code() is None
        ]  # theirs was asked for
        return [child for child in self.children if child.exit_code() is not None]

    def trim_logs(self) -> None:
        """Keep the logs from growing for ever: one that is too large starts anew, the old one beside it."""
        for child in self.children:
            child.trim_log(LOG_BYTES)

    def stop(self) -> None:
        """Stop everything in order: who starts work, who does it, who shows it, who stores it."""
        until = time.monotonic() + STOP_PATIENCE_S
        servers = [child for child in self.children if child.name == "redis"]
        others = [child for child in self.children if child.name != "redis"]
        for child in others:
            child.terminate()
        others += self._leaving
        for child in others:
            if not child.wait(max(0.05, until - time.monotonic())):
                child.kill()
        for child in servers:
            child.terminate()
            if not child.wait(1.0):
                child.kill()
        ENV_FILE.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()

    @property
    def urls(self) -> dict[str, str]:
        """Where each face answers."""
        urls = {"page": f"http://127.0.0.1:{self.options.api_port}/"}
        urls["api"] = f"{urls['page']}docs"
        if self.options.with_flower:
            urls["flower"] = f"http://127.0.0.1:{self.options.flower_port}/"
        return urls

    def _take_folder(self, folder: Path) -> None:
        self._lock = (folder / "up.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CronqError(
                f"another `cronq up` runs in {folder.resolve()}; stop it with Ctrl-C, or use --folder"
            ) from None

    def _find_stores(self, folder: Path) -> None:
        """Fill the environment: what the user set stays, the rest is embedded."""
        settings = load_settings()
        if "CRONQ_REDIS_URL" not in self.env:
            child, self.env["CRONQ_REDIS_URL"] = start_redis(folder.resolve() / "redis", self.env)
            self.children.append(child)
        self.env.setdefault("CRONQ_BROKER_URL", settings.broker_url or self.env["CRONQ_REDIS_URL"])
        self.env.setdefault("CRONQ_DATABASE_URL", f"sqlite:///{folder.resolve()}/cronq.db")
        self.env.setdefault("CRONQ_API_URL", f"http://127.0.0.1:{self.options.api_port}")
        if self.options.with_flower:
            self.env.setdefault("CRONQ_FLOWER_URL", f"http://127.0.0.1:{self.options.flower_port}")
        self.env["PYTHONUNBUFFERED"] = "1"
        names = sorted(name for name in self.env if name.startswith("CRONQ_") and name.endswith("_URL"))
        # So that `cronq …` and `celery …`, typed here in another terminal, speak to this stack.
        ENV_FILE.parent.mkdir(exist_ok=True)
        ENV_FILE.write_text("".join(f"{name}={self.env[name]}\n" for name in names))
        ENV_FILE.chmod(0o600)

    def _commands(self) -> list[tuple[str, Sequence[str]]]:
        python, options = sys.executable, self.options
        beat = self._celery(options.beat_app, "beat", "-S", "cronq", "-l", "INFO")
        commands: list[tuple[str, Sequence[str]]] = [(f"beat-{n}", beat) for n in range(1, options.beats + 1)]
        port = str(options.api_port)
        commands.append(("api", [python, "-m", "cronq", "api", "--host", "127.0.0.1", "--port", port]))
        if options.with_flower:
            self.env.setdefault("FLOWER_UNAUTHENTICATED_API", "true")  # it listens on loopback only
            flower = ["--address=127.0.0.1", f"--port={options.flower_port}", f"--max_tasks={FLOWER_TASKS}"]
            commands.append(("flower", self._celery(options.worker_app, "flower", *flower)))
        commands += [(module, [python, "-m", module]) for module in options.modules]
        return commands

    def _celery(self, app: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", app, "-b", self.env["CRONQ_BROKER_URL"], *words]

    def _start(self, name: str, command: Sequence[str]) -> Child:
        child = Child(name, command, env=self.env, log=self.options.folder / f"{name}.log")
        self.children.append(child)
        return child


def _require_free_port(port: int, option: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise CronqError(
                f"port {port} is taken, perhaps by another `cronq up`: stop that, or use {option}"
            ) from None
