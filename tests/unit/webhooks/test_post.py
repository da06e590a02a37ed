"""One POST: to the address that was checked, to nobody that it is redirected to, never for long."""

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest

from cronq.webhooks import post as module
from cronq.webhooks.address import AddressRefused
from cronq.webhooks.post import NotDelivered, post

ALLOWED = [ip_network("127.0.0.1")]


class Receiver(http.server.BaseHTTPRequestHandler):
    status = 204
    seen: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, dict(self.headers), body))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.seen.append((self.path, {}, b"a redirect was followed"))

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Any]:
    kind = type("OneReceiver", (Receiver,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        kind.url = f"http://127.0.0.1:{server.server_port}"
        yield kind
        server.shutdown()
        thread.join()


def test_the_body_and_the_headers_arrive(receiver):
    assert post(receiver.url + "/hook?a=1", b"{}", {"webhook-id": "x"}, ALLOWED) == 204
    ((path, headers, body),) = receiver.seen
    assert (path, body, headers["webhook-id"]) == ("/hook?a=1", b"{}", "x")
    assert headers["Host"] == receiver.url.removeprefix("http://")


def test_a_redirect_is_an_answer_and_not_followed(receiver):
    receiver.status = 302
    assert post(receiver.url, b"{}", {}, ALLOWED) == 302
    assert len(receiver.seen) == 1


def test_nothing_is_sent_to_an_address_that_is_not_allowed(receiver):
    with pytest.raises(AddressRefused):
        post(receiver.url, b"{}", {}, [])
    assert receiver.seen == []


def test_a_name_is_asked_once_so_that_it_cannot_lead_elsewhere_later(receiver, monkeypatch):
    port = int(receiver.url.rpartition(":")[2])
    asked = []
    real = socket.getaddrinfo

    def rebinding(host, *args, **kwargs):
        # The name's first answer may be sent to; from then on it is another machine.
        if host == "rebind.example":
            asked.append(host)
            return real("127.0.0.1" if len(asked) == 1 else "127.0.0.2", *args, **kwargs)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    assert post(f"http://rebind.example:{port}/", b"{}", {}, ALLOWED) == 204
    assert len(asked) == 1
    assert receiver.seen[0][1]["Host"] == f"rebind.example:{port}"


def test_a_receiver_that_is_down_is_told_apart(receiver):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NotDelivered, match="did not answer"):
        post(f"http://127.0.0.1:{port}/", b"{}", {}, ALLOWED)
    with pytest.raises(NotDelivered):
        post(f"https://127.0.0.1:{receiver.url.rpartition(':')[2]}/", b"{}", {}, ALLOWED)


def test_one_that_answers_byte_by_byte_is_let_go(monkeypatch):
    monkeypatch.setattr(module, "DEADLINE_S", 0.2)
    given_up = threading.Event()

    def drip(server: socket.socket) -> None:
        client, _ = server.accept()
        with client, contextlib.suppress(OSError):
            while not given_up.wait(0.01):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        with pytest.raises(NotDelivered):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, ALLOWED)
        given_up.set()
        thread.join()
