"""Somebody else's HTTP server, which writes down what it is sent."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Receiver:
    """What was sent, and what it answers: it may be ill for a while."""

    port: int
    status: int = 200
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    waiting: int = 0  #: requests that are not answered while it holds them
    _open: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._open.set()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Take requests, and answer none of them until the end of the block."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def hold(self) -> None:
        if not self._open.is_set():
            self.waiting += 1
            self._open.wait()
            self.waiting -= 1

    def bodies(self) -> list[dict[str, Any]]:
        """What was posted, read as JSON."""
        return [json.loads(body) for _, body in self.seen]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.hold()
            self.answer()

        def answer(self) -> None:
            self.send_response(here.status)
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.answer()
            here.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))

        def log_message(self, *_args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_args: Any) -> None:
            pass  # the other side was killed

    with Server(("127.0.0.1", port), Handler) as server:
        here = Receiver(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield here
        server.shutdown()
        thread.join()
