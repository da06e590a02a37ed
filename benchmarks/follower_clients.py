"""Many clients that follow one job by Server-Sent Events, in one process that costs as little as it can.

`python -m benchmarks.follower_clients HOST PORT PATH CLIENTS` prints `ready` when all have the first event,
reads until its input ends, and then prints for each change (by its own instant) when each client had it.
"""

import json
import re
import selectors
import socket
import sys
import time

_CHANGED = re.compile(rb'"updated_at": ?"?([0-9][^",}]*)')
_BATCH = 50


def main() -> None:
    """Do what the arguments say."""
    host, port, path, clients = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    selector = selectors.EpollSelector()
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n".encode()
    for begun in range(0, clients, _BATCH):
        fresh = set()
        for _ in range(min(_BATCH, clients - begun)):
            sock = socket.create_connection((host, port))
            sock.sendall(request)
            selector.register(sock, selectors.EVENT_READ)
            fresh.add(sock.fileno())
        _read(selector, {}, until_each=fresh)
    print("ready", flush=True)
    selector.register(sys.stdin, selectors.EVENT_READ)
    arrived: dict[str, list[float]] = {}
    _read(selector, arrived, until_each=None)
    print(json.dumps(arrived))


def _read(
    selector: selectors.EpollSelector, arrived: dict[str, list[float]], *, until_each: set[int] | None
) -> None:
    """Note when each client had each change; until each of those named had anything, or the input ends."""
    while until_each is None or until_each:
        for key, _ in selector.select(1.0):
            if key.fileobj is sys.stdin:
                return
            data = key.fileobj.recv(65536)  # type: ignore[union-attr]
            now = time.time()
            if not data:
                raise SystemExit("a client was let go")
            if until_each is not None:
                until_each.discard(key.fd)
            for found in _CHANGED.finditer(data):
                arrived.setdefault(found[1].decode(), []).append(now)


if __name__ == "__main__":
    main()
