"""One POST to an address that was checked: no redirect is followed, no proxy asked, no answer read."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from cronq.settings import Network
from cronq.webhooks.address import find_addresses, port_of

STEP_S: Final = 5.0
"""Seconds that connecting, or any single read or write, may take."""
DEADLINE_S: Final = 15.0
"""Seconds for all of it: a receiver that answers byte by byte must not keep a worker."""


class NotDelivered(Exception):
    """The receiver could not be reached, or did not say that it took the webhook."""


def post(url: str, body: bytes, headers: Mapping[str, str], allowed: Sequence[Network]) -> int:
    """Send `body` and return the status; raise `AddressRefused`, or `NotDelivered` without an answer."""
    split = urlsplit(url)
    host, port = split.hostname or "", port_of(split)
    kind = HTTPSConnection if split.scheme == "https" else HTTPConnection
    connection = kind(host, port)
    connection.auto_open = 0  # it may only ever use the socket that it is given
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    try:
        with _connected(host, port, allowed, https=split.scheme == "https") as sock:
            connection.sock = sock
            connection.request("POST", path, body, dict(headers))
            return connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise NotDelivered(f"{host}:{port} did not answer: {error or type(error).__name__}") from error


@contextmanager
def _connected(host: str, port: int, allowed: Sequence[Network], *, https: bool) -> Iterator[socket.socket]:
    sock = _connect(find_addresses(host, port, allowed), port)
    with contextlib.ExitStack() as stack:
        stack.enter_context(sock)
        if https:
            context = ssl.create_default_context()
            sock = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            stack.enter_context(sock)
        late = threading.Timer(DEADLINE_S, _cut, [sock])
        late.daemon = True
        late.start()
        stack.callback(late.cancel)
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        yield sock


def _connect(addresses: Sequence[str], port: int) -> socket.socket:
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), timeout=STEP_S)
    return socket.create_connection((addresses[-1], port), timeout=STEP_S)


def _cut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
