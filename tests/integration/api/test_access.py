"""Who may? Tokens, roles, other sites, other hosts, bounds."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cronq.api.app import create_app
from cronq.app import Cronq
from cronq.store.tokens import Role, check_token, create_token, list_tokens, revoke_token

from .steps import BASE, PAGE


def test_roles_reach_as_far_as_they_say(client: TestClient, parts: Cronq) -> None:
    tokens = {role: create_token(parts.database, role.value, role) for role in Role}

    def status(role: Role, method: str, path: str, **body: Any) -> int:
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        return int(client.request(method, path, headers=headers, **body).status_code)

    job, schedule = {"json": {"type": "t"}}, {"json": {"task": "t", "every": 60}}
    assert [status(role, "GET", "/api/jobs") for role in Role] == [200, 200, 200]
    assert [status(role, "POST", "/api/jobs", **job) for role in Role] == [403, 202, 202]
    assert [status(role, "PUT", "/api/schedules/x", **schedule) for role in Role] == [403, 403, 201]
    assert [status(role, "DELETE", "/api/schedules/x") for role in Role] == [403, 403, 204]


def test_once_there_is_a_token_nobody_gets_in_without(client: TestClient, parts: Cronq) -> None:
    assert client.get("/api/jobs").status_code == 200
    text = create_token(parts.database, "ci", Role.VIEWER)
    refused = client.get("/api/jobs")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert "cronq token create" in refused.json()["detail"]
    for wrong in ("x", text[:-1], text + "a", text.replace("cronq_", "other_"), "cronq__", ""):
        assert client.get("/api/jobs", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
    good = {"Authorization": f"Bearer {text}"}
    assert client.get("/api/jobs", headers=good).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.get("/metrics").status_code == 401
    revoke_token(parts.database, "ci")
    assert client.get("/api/jobs", headers=good).status_code == 401
    assert check_token(parts.database, text) is None
    assert text.rsplit("_", 1)[1] not in str(list_tokens(parts.database))


def test_the_page_is_signed_in_by_a_cookie_no_script_can_read(client: TestClient, parts: Cronq) -> None:
    text = create_token(parts.database, "ann", Role.VIEWER)
    sent_away = client.get("/jobs", headers=PAGE)
    assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/login?next=/jobs")
    assert client.post("/login", data={"token": "wrong"}).status_code == 403
    back = client.post("/login", data={"token": text, "next": "/jobs"})
    assert (back.status_code, back.headers["location"]) == (303, "/jobs")
    assert re.search("HttpOnly.*SameSite=strict", back.headers["set-cookie"])
    page = client.get("/jobs", headers=PAGE)
    assert page.status_code == 200
    assert client.post("/act/run", data={"name": "x"}, headers=PAGE).status_code == 403
    elsewhere = client.post("/login", data={"token": text, "next": "//evil.example"})
    assert elsewhere.headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://[broken"},
    ],
)
def test_another_sites_page_can_change_nothing(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.post("/api/jobs", json={"type": "t"}, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "cross-site"
    assert client.get("/api/jobs").json()["items"] == []


def test_the_pages_own_form_gets_in_even_where_the_browser_hides_the_origin(client: TestClient) -> None:
    headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/jobs", json={"type": "t"}, headers=headers).status_code == 202
    own = {"Origin": BASE}
    assert client.post("/api/jobs", json={"type": "t"}, headers=own).status_code == 202


def test_another_hosts_name_for_this_machine_is_refused(client: TestClient) -> None:
    answer = client.get("/api/jobs", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert client.get("/api/jobs", headers={"Host": "localhost:8787"}).status_code == 200


def test_off_loopback_nothing_is_open(parts: Cronq) -> None:
    with TestClient(create_app(parts, host="0.0.0.0"), base_url="http://cronq.example") as client:
        assert client.get("/api/jobs").status_code == 401
        text = create_token(parts.database, "ci", Role.VIEWER)
        assert client.get("/api/jobs", headers={"Authorization": f"Bearer {text}"}).status_code == 200


def test_a_body_is_bounded(client: TestClient, parts: Cronq) -> None:
    size = 2 * parts.settings.max_payload_bytes + 1
    assert client.post("/api/jobs", content=b"x" * size).status_code == 413

    def drops() -> Iterator[bytes]:
        yield b"{"

    assert client.post("/api/jobs", content=drops()).status_code == 411


def test_whoever_asks_too_often_is_told_when_to_come_back(parts: Cronq) -> None:
    few = Cronq(parts.app, parts.settings.model_copy(update={"api_rate": 0.2}))
    with TestClient(create_app(few), base_url=BASE) as client:
        statuses = [client.get("/api/jobs").status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        refused = client.get("/api/jobs")
        assert 1 <= int(refused.headers["retry-after"]) <= 5
        assert refused.json()["code"] == "too-many-requests"
        assert client.get("/healthz").status_code == 200
        token = create_token(parts.database, "ann", Role.VIEWER)
        own = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/jobs", headers=own).status_code == 200
        assert client.get("/api/jobs").status_code == 429
    few.database.dispose()
