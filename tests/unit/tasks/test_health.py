import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tasks.health import check_service, open_health

from .conftest import FIRE_TIME, job


class Service(BaseHTTPRequestHandler):
    well = True
    heard: ClassVar[list[dict[str, str]]]

    def do_GET(self) -> None:
        self.send_response(200 if type(self).well else 503)
        self.end_headers()

    def do_POST(self) -> None:
        type(self).heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def serving(handler: type[Service]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class Shop(Service):
    heard: ClassVar[list[dict[str, str]]] = []


class Pager(Service):
    heard: ClassVar[list[dict[str, str]]] = []


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str | None]]:
    monkeypatch.setenv("HEALTH_PATH", str(tmp_path / "health.sqlite"))
    Shop.well = Pager.well = True
    Pager.heard.clear()
    with serving(Shop) as url, serving(Pager) as pager:
        monkeypatch.setenv("ALERT_URL", pager)

        def at_minute(minute: int) -> str | None:
            with job(FIRE_TIME + timedelta(minutes=minute)):
                error = check_service("shop", url)["error"]
            return None if error is None else str(error)

        yield at_minute


def alerts() -> list[tuple[str, bool, bool]]:
    with open_health() as health:
        return health.execute(
            "SELECT since, sent_at IS NOT NULL, over_at IS NOT NULL FROM alert ORDER BY since"
        ).fetchall()


def test_a_service_that_is_well_is_noted_and_nobody_is_woken(look: Callable[..., str | None]) -> None:
    assert look(0) is None
    assert alerts() == []


def test_sustained_failure_wakes_somebody_once_and_says_since_when(look: Callable[..., str | None]) -> None:
    look(0)
    Shop.well = False
    for minute in range(1, 7):
        assert "503" in str(look(minute))
    since = (FIRE_TIME + timedelta(minutes=1)).isoformat()
    assert [(heard["service"], heard["down_since"]) for heard in Pager.heard] == [("shop", since)]
    assert alerts() == [(since, True, False)]
    Shop.well = True
    look(7)
    assert alerts() == [(since, True, True)]


def test_two_failures_wake_nobody_and_a_success_between_starts_the_count_anew(
    look: Callable[..., str | None],
) -> None:
    for minute, well in enumerate([False, False, True, False, False]):
        Shop.well = well
        look(minute)
    assert Pager.heard == []


def test_looking_twice_at_one_fire_time_counts_once(look: Callable[..., str | None]) -> None:
    Shop.well = False
    for minute in (0, 0, 0, 1, 1):
        look(minute)
    assert Pager.heard == []


def test_an_alert_that_was_not_heard_is_sent_again(look: Callable[..., str | None]) -> None:
    Shop.well = Pager.well = False
    look(0)
    look(1)
    with pytest.raises(OSError, match="503"):
        look(2)
    assert [sent for _since, sent, _over in alerts()] == [False]
    Pager.well = True
    look(3)
    assert [sent for _since, sent, _over in alerts()] == [True]
