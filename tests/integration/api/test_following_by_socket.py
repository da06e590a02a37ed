"""Following by WebSocket: the same events as Server-Sent Events, the same way back, the same guard."""

import asyncio
import json
from collections.abc import Iterator, MutableMapping
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from cronq.api.app import create_app
from cronq.app import Cronq
from cronq.store.tokens import Role, create_token

from .steps import BASE, end


def ask(served: str) -> str:
    job_id: str = httpx.post(f"{served}/api/jobs", json={"type": "demo.work"}).json()["id"]
    return job_id


def address(served: str, query: str = "") -> str:
    return served.replace("http://", "ws://") + "/api/ws" + query


def messages(socket: ClientConnection) -> Iterator[dict[str, object]]:
    while True:
        yield json.loads(socket.recv(timeout=20))


def test_a_jobs_events_go_from_how_it_stands_to_its_end(served: str, parts: Cronq) -> None:
    job_id = ask(served)
    with connect(address(served, f"?job={job_id}")) as socket:
        first = next(messages(socket))
        assert (first["event"], first["data"]["status"]) == ("job", "SCHEDULED")
        end(parts, job_id)
        last = next(each for each in messages(socket) if each["data"]["status"] == "COMPLETED")
        assert last["id"] is not None
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=20)
        assert closed.value.rcvd.code == 1000


def test_a_client_that_comes_back_misses_no_change(served: str, parts: Cronq) -> None:
    first = ask(served)
    with connect(address(served)) as socket:
        end(parts, first)
        seen = next(each for each in messages(socket) if each["data"].get("status") == "COMPLETED")
    away = {ask(served) for _ in range(5)}
    for job_id in away:
        end(parts, job_id)
    told: set[str] = set()
    with connect(address(served, f"?after={seen['id']}")) as socket:
        while not away <= told:  # or no message comes any more, which fails
            told |= {
                each["id"] for each in (next(messages(socket))["data"],) if each["status"] == "COMPLETED"
            }
    assert told <= {first, *away}


@pytest.mark.parametrize(("query", "status"), [("?job=nope", 404), ("?after=x", 400)])
def test_what_cannot_be_followed_is_refused(served: str, query: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(address(served, query)):
        pass
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["status"] == status


def test_another_sites_page_and_a_stranger_are_refused(served: str, parts: Cronq) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(address(served), origin="https://evil.example"):
        pass
    assert refused.value.response.status_code == 403
    token = create_token(parts.database, "ann", Role.VIEWER)
    with pytest.raises(InvalidStatus) as refused, connect(address(served)):
        pass
    assert refused.value.response.status_code == 401
    with connect(address(served), additional_headers={"Authorization": f"Bearer {token}"}) as socket:
        assert socket.ping().wait(20)


@pytest.mark.parametrize("by_id", [200, 0])
def test_who_follows_one_job_hears_of_it_whether_or_not_others_follow_all(
    served: str, parts: Cronq, monkeypatch: pytest.MonkeyPatch, by_id: int
) -> None:
    monkeypatch.setattr("cronq.api.feed.MOST_BY_ID", by_id)
    first, second = ask(served), ask(served)

    def heard(socket: ClientConnection, job_id: str, status: str) -> bool:
        told = (each["data"] for each in messages(socket))
        return any((each["id"], each["status"]) == (job_id, status) for each in told)

    with connect(address(served, f"?job={second}")) as one:
        assert heard(one, second, "SCHEDULED")
        with connect(address(served, f"?job={first}")) as other, connect(address(served)) as every:
            assert heard(other, first, "SCHEDULED")
            end(parts, first)
            assert heard(other, first, "COMPLETED")
            assert heard(every, first, "COMPLETED")
        end(parts, second)
        assert heard(one, second, "COMPLETED")


def test_a_client_that_goes_while_it_is_told_something_is_no_fault(parts: Cronq, client: TestClient) -> None:
    job_id = client.post("/api/jobs", json={"type": "demo.work"}).json()["id"]
    sent: list[str] = []

    async def follow() -> None:
        said = iter([{"type": "websocket.connect"}])

        async def receive() -> dict[str, str]:
            return next(said, None) or await asyncio.get_running_loop().create_future()

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message["type"])
            if message["type"] == "websocket.send":
                raise OSError("the client is gone")

        scope = {
            "type": "websocket",
            "path": "/api/ws",
            "query_string": f"job={job_id}".encode(),
            "headers": [(b"host", BASE.removeprefix("http://").encode())],
            "client": ("127.0.0.1", 1),
            "subprotocols": [],
        }
        await create_app(parts)(scope, receive, send)

    asyncio.run(follow())
    assert sent == ["websocket.accept", "websocket.send"]
