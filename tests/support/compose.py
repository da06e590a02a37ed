"""Reads compose files as Docker Compose does, as far as this repository's use it, and runs their services."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<word>[^}]*))?\})")


class Reset:
    """`!reset`: what lies below is removed from the file before."""


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("!reset", lambda _loader, _node: Reset())


def load(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(), Loader)


def merge(below: Any, above: Any) -> Any:
    """Lay `above` over `below`: mappings key by key, everything else replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, Reset):
            merged.pop(key, None)
        else:
            merged[key] = merge(below[key], value) if key in below else value
    return merged


def without_resets(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_resets(v) for k, v in value.items() if not isinstance(v, Reset)}
    return value


def interpolate(value: Any, variables: Mapping[str, str]) -> Any:
    """Fill `${NAME}`, `${NAME:-default}` and `${NAME:?message}` in every text."""
    if isinstance(value, dict):
        return {key: interpolate(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [interpolate(one, variables) for one in value]
    if not isinstance(value, str):
        return value

    def fill(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        given = variables.get(found["name"], "")
        if given or found["kind"] is None:
            return given
        if found["kind"] == "?":
            raise KeyError(f"{found['name']}: {found['word']}")
        return found["word"]

    return VARIABLE.sub(fill, value)


def words(command: str | list[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)


def health_command(service: Mapping[str, Any]) -> list[str]:
    kind, *command = service["healthcheck"]["test"]
    assert kind == "CMD", "a shell in a health check hides its mistakes"
    return command


def variables_in(text: str) -> set[str]:
    return {found["name"] for found in VARIABLE.finditer(text) if found["name"]}


def in_start_order(services: Mapping[str, Any]) -> Iterator[str]:
    """Yield the services' names, each after all that it depends on."""
    begun: list[str] = []

    def visit(name: str) -> Iterator[str]:
        if name in begun:
            return
        begun.append(name)
        for needed in services[name].get("depends_on", {}):
            yield from visit(needed)
        yield name

    for name in services:
        yield from visit(name)


def seconds(text: str) -> float:
    units = {"ms": 0.001, "s": 1, "m": 60}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([\d.]+)(ms|s|m)", text))
