"""Whatever is sent, fitting the API's own description or not, is answered as it says, and never by a fault.

The event streams are left out: they do not end.
"""

import contextlib
from typing import Any

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cronq.api.app import create_app
from cronq.app import Cronq
from cronq.job import State

from .steps import ask, declare, end

EXAMPLES = 6
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HERE = {"Host": "127.0.0.1"}


def test_every_answer_is_as_described(client: TestClient, parts: Cronq) -> None:
    described = schemathesis.openapi.from_asgi("/openapi.json", create_app(parts), headers=HERE)
    there = things(client, parts)
    wrong: list[str] = []
    for found in described.exclude(path_regex="/events$").get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            try:
                with contextlib.suppress(Unsatisfiable):  # what takes nothing cannot be asked wrongly
                    hammer(operation, mode, there)
            except (AssertionError, BaseExceptionGroup) as failure:
                wrong.append(f"{operation.label}: {failure}")
    assert not wrong, "\n\n".join(wrong)


def things(client: TestClient, parts: Cronq) -> dict[str, str]:
    """Make one of each, so that not every path leads to nothing."""
    declare(parts, "hourly")
    dead = ask(client)["id"]
    end(parts, dead, state=State.FAILED, error="no")
    day = {"start": "2026-11-20T00:00:00Z", "end": "2026-11-21T00:00:00Z"}
    backfill = client.post("/api/schedules/hourly/backfill", json=day).json()["id"]
    return {"name": "hourly", "job_id": dead, "dead_id": dead, "backfill_id": backfill, "schedule": "hourly"}


def hammer(operation: Any, mode: GenerationMode, there: dict[str, str]) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode), exists=st.booleans())
    def send(case: schemathesis.Case, exists: bool) -> None:
        for given_by_name in (case.path_parameters, case.query) if exists else ():
            given_by_name.update({name: there[name] for name in there.keys() & given_by_name.keys()})
        if "wait" in case.query:
            case.query["wait"] = 0
        case.call_and_validate(headers=HERE, checks=CHECKS)

    send()
