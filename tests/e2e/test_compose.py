"""The compose files, without an engine: their shape, and their own commands as processes of this machine."""

import importlib.metadata
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from tests.support import compose
from tests.support.processes import ROOT, Process, Processes, wait_for
from tests.support.servers import PostgreSQLServer, RabbitMQServer, RedisServer, free_port

FOLDER = ROOT / "compose"
BASE, REDIS = FOLDER / "compose.yaml", FOLDER / "compose.redis.yaml"
ENGINES = {"rabbitmq", "redis", "postgres"}
CRONQ = {"migrate", "beat-1", "beat-2", "worker", "api", "flower"}
SECRETS = {
    "POSTGRES_PASSWORD": "pgpass",
    "RABBITMQ_PASSWORD": "rabbitpass",
    "REDIS_PASSWORD": "redispass",
    "FLOWER_BASIC_AUTH": "admin:flowerpass",
}
STACKS = {"rabbitmq": [BASE], "redis": [BASE, REDIS]}


def stack(broker: str, variables: Mapping[str, str] = SECRETS) -> dict[str, Any]:
    merged: Any = {}
    for path in STACKS[broker]:
        merged = compose.merge(merged, compose.load(path))
    return compose.interpolate(merged, variables)


def schema_of_compose() -> dict[str, Any]:
    """The specification's own schema, from the package that ships it."""
    package = importlib.metadata.distribution("check-jsonschema")
    path = package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")
    return json.loads(Path(str(path)).read_text())


@pytest.mark.parametrize("path", [BASE, REDIS], ids=lambda path: path.name)
def test_each_file_is_valid_compose(path: Path) -> None:
    jsonschema.validate(compose.without_resets(compose.load(path)), schema_of_compose())


@pytest.mark.parametrize("broker", STACKS)
def test_the_merged_files_are_valid_compose(broker: str) -> None:
    jsonschema.validate(stack(broker), schema_of_compose())


def test_schema_refuses_what_compose_would_refuse() -> None:
    with pytest.raises(jsonschema.ValidationError, match="comand"):
        jsonschema.validate({"services": {"a": {"image": "b", "comand": "c"}}}, schema_of_compose())


def test_the_overlay_leaves_no_trace_of_rabbitmq() -> None:
    assert set(stack("rabbitmq")["services"]) == ENGINES | CRONQ
    redis_only = stack("redis")
    assert set(redis_only["services"]) == (ENGINES | CRONQ) - {"rabbitmq"}
    assert "rabbitmq" not in json.dumps({k: v for k, v in redis_only.items() if not k.startswith("x-")})


@pytest.mark.parametrize("broker", STACKS)
def test_every_service_is_looked_after(broker: str) -> None:
    for name, service in stack(broker)["services"].items():
        assert service["restart"] == ("on-failure:5" if name == "migrate" else "unless-stopped"), name
        if name != "migrate":
            assert {"test", "interval", "timeout", "retries"} <= set(service["healthcheck"]), name
        for needed, condition in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if needed == "migrate" else "service_healthy"
            assert condition == {"condition": wanted}, f"{name} → {needed}"
        if name in CRONQ:
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in stack("rabbitmq")["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_file_holds_a_secret_and_each_one_is_asked_for() -> None:
    for name in SECRETS:
        given = {key: value for key, value in SECRETS.items() if key != name}
        with pytest.raises(KeyError, match=rf"{name}: set it in \.env"):
            stack("rabbitmq", given)
    example = dict(line.split("=", 1) for line in env_lines())
    assert set(example) == set().union(*(compose.variables_in(path.read_text()) for path in (BASE, REDIS)))
    compose.merge({}, stack("rabbitmq", example))


def env_lines() -> list[str]:
    lines = (FOLDER / ".env.example").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_image_is_built_in_stages_from_the_lock_and_runs_as_nobody() -> None:
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    assert sum(line.startswith("FROM ") for line in lines) == 2
    assert any("--constraints requirements.lock" in line for line in lines)
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001"]
    kept = {line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().split() if line[0] == "!"}
    copied = {
        word
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


class Unhealthy(Exception):
    """What a health check said that failed."""


class LocalStack:
    """The cronq services of a stack as processes: their own command, environment and health check."""

    def __init__(
        self, services: Mapping[str, Any], urls: Mapping[str, str], at: Path, run: Processes
    ) -> None:
        self.services, self.urls, self.at, self.run = services, urls, at, run
        self.ports = {"8787": str(free_port()), "5555": str(free_port())}
        self.running: dict[str, Process] = {}

    def here(self, text: str) -> str:
        """Translate what only makes sense inside a container: ports, addresses, the volume."""
        for inside, outside in self.ports.items():
            text = re.sub(rf"\b{inside}\b", outside, text)
        return text.replace("0.0.0.0", "127.0.0.1").replace("/var/lib/cronq", str(self.at / "work"))

    def url(self, text: str) -> str:
        """Point a URL at the test server that stands for its host; a Redis database keeps its number."""
        there = urlsplit(text)
        assert there.hostname in ENGINES, text
        if there.hostname == "redis":
            return self.urls["redis"].rpartition("/")[0] + there.path
        return self.urls[there.hostname]

    def environment(self, name: str) -> dict[str, str]:
        own = {key: str(value) for key, value in self.services[name]["environment"].items()}
        given = {
            key: self.url(value) if urlsplit(value).hostname in ENGINES else self.here(value)
            for key, value in own.items()
        }
        tmp = self.at / f"tmp-{name}"
        tmp.mkdir(parents=True, exist_ok=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(tmp), "TMPDIR": str(tmp), "HOSTNAME": name, **given}

    def argv(self, command: list[str]) -> list[str]:
        return program([self.here(word) for word in command])

    def start(self, name: str) -> None:
        service = self.services[name]
        argv = self.argv(compose.words(service["command"]))
        process = self.run.start(name, *argv, env=self.environment(name))
        if name == "migrate":
            assert process.wait(60) == 0, process.tail()
            return
        self.running[name] = process

    def is_healthy(self, name: str) -> bool:
        assert self.running[name].running, self.running[name].tail()
        health = compose.health_command(self.services[name])
        limit = compose.seconds(self.services[name]["healthcheck"]["timeout"])
        code, said = self.run.run(
            f"{name}-health", *self.argv(health), timeout=limit * 2, env=self.environment(name)
        )
        if code != 0:
            raise Unhealthy(said.strip())
        return True


def program(argv: list[str]) -> list[str]:
    """Name the virtual environment's own program: a child's PATH does not decide what is executed."""
    at = Path(sys.executable).with_name(argv[0])
    return [str(at), *argv[1:]] if at.exists() else argv


@pytest.fixture
def local_stack(
    request: pytest.FixtureRequest,
    redis_server: RedisServer,
    postgresql_server: PostgreSQLServer,
    processes: Processes,
    tmp_path: Path,
) -> Callable[[str], LocalStack]:
    def make(broker: str) -> LocalStack:
        for number in (0, 1):
            redis_server.database(number)
        urls = {"redis": redis_server.url, "postgres": postgresql_server.database()}
        request.addfinalizer(lambda: postgresql_server.drop_database(urls["postgres"]))
        if broker == "rabbitmq":
            rabbitmq: RabbitMQServer = request.getfixturevalue("rabbitmq_server")
            urls["rabbitmq"] = rabbitmq.vhost()
        variables = {**SECRETS, "REPORT_TENANTS": "acme,wonka", "REPORTS_AT": "*/5 * * * * *"}
        return LocalStack(stack(broker, variables)["services"], urls, tmp_path, processes)

    return make


@pytest.mark.parametrize("broker", STACKS)
def test_services_run_as_written_and_reports_come_out(
    broker: str, local_stack: Callable[[str], LocalStack]
) -> None:
    here = local_stack(broker)
    for name in compose.in_start_order(here.services):
        if name in CRONQ:
            here.start(name)
    for name in here.running:
        start = compose.seconds(here.services[name]["healthcheck"]["start_period"])
        wait_for(
            lambda name=name: here.is_healthy(name), start * 2, f"{name} to be healthy", ignoring=Unhealthy
        )

    reports = here.at / "work" / "reports"
    for tenant in ("acme", "wonka"):
        made = wait_for(lambda at=reports / tenant: list(at.glob("*.html")), 30, f"a report of {tenant}")
        wait_for(lambda made=made: made[0].with_suffix(".csv").exists(), 10, "its table")
    wait_for(lambda: completed_tenants(here) == {"acme", "wonka"}, 15, "their jobs to be on record")

    began = time.monotonic()
    for process in here.running.values():
        process.signal(process.stop_signal)
    ended = {name: process.wait(30) for name, process in here.running.items()}
    assert ended == dict.fromkeys(here.running, 0), f"after {time.monotonic() - began:.1f} s"


def completed_tenants(here: LocalStack) -> set[str]:
    asked = here.argv(["cronq", "jobs", "list", "--json", "--state", "COMPLETED"])
    code, said = here.run.run("jobs", *asked, env=here.environment("api"))
    assert code == 0, said
    return {job["tenant"] for job in json.loads(said)["items"] if job["tenant"]}
