"""A payment service to try billing with: `python -m tasks.payment_service`. It is not well on purpose.

`POST /payments` with an `Idempotency-Key` makes one payment for each key. Of ten new keys one is answered
with an error before the payment, one with an error after it, and one so late that nobody waits for it. More
than `--rate` requests within a second are refused with 429 and a `Retry-After`.
"""

import argparse
import hashlib
import json
import threading
import time
from collections import Counter, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LATE_S = 3.0


class Ledger:
    """The requests and payments that were made, in a file: they outlive the service."""

    def __init__(self, path: Path, rate: int) -> None:
        self._path, self._rate = path, rate
        self._lock = threading.Lock()
        self._requests: deque[float] = deque()
        lines = path.read_text().splitlines() if path.exists() else []
        notes = [json.loads(line) for line in lines]
        self._tries = Counter(note["key"] for note in notes if note["what"] == "request")
        self._payments: dict[str, str] = {
            note["key"]: note["payment"] for note in notes if note["what"] == "payment"
        }

    def admit(self, key: str) -> bool:
        """Note a request; tell whether it is within the rate."""
        with self._lock:
            now = time.monotonic()
            while self._requests and self._requests[0] <= now - 1.0:
                self._requests.popleft()
            admitted = len(self._requests) < self._rate
            if admitted:
                self._requests.append(now)
            self._note(what="request" if admitted else "refused", key=key)
            return admitted

    def trouble(self, key: str) -> str | None:
        """Say what goes wrong with this request; only the first one for a key may."""
        with self._lock:
            self._tries[key] += 1
            if self._tries[key] > 1:
                return None
        lot = hashlib.sha256(key.encode()).digest()[0] % 10
        return {0: "before", 1: "after", 2: "late"}.get(lot)

    def pay(self, key: str) -> str:
        """Make the payment, or return the one that was made."""
        with self._lock:
            if key not in self._payments:
                self._payments[key] = f"pay_{len(self._payments) + 1:06}"
                self._note(what="payment", key=key, payment=self._payments[key])
            return self._payments[key]

    def _note(self, **facts: str) -> None:
        with self._path.open("a") as journal:
            journal.write(json.dumps({**facts, "at": time.time()}) + "\n")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    ledger: Ledger

    def do_GET(self) -> None:
        """Say that it answers."""
        self._answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        """Take a payment."""
        key = self.headers["Idempotency-Key"]
        account = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["account"]
        if not self.ledger.admit(key):
            self._answer(429, {"error": "too many requests"}, {"Retry-After": "1"})
        elif account.endswith("-poor"):
            self._answer(402, {"error": "declined"})
        else:
            self._take(key)

    def _take(self, key: str) -> None:
        trouble = self.ledger.trouble(key)
        if trouble == "before":
            self._answer(503, {"error": "try again"})
            return
        payment = self.ledger.pay(key)
        if trouble == "late":
            time.sleep(LATE_S)
        if trouble == "after":
            self._answer(500, {"error": "who knows"})
        else:
            self._answer(200, {"id": payment})

    def _answer(self, status: int, body: dict[str, str], headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the other side did not wait

    def log_message(self, *_args: object) -> None:
        """Keep quiet; the ledger tells."""


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8790)
    parser.add_argument("--rate", type=int, default=20, help="requests per second that are served")
    parser.add_argument("--journal", type=Path, default=Path("data/payments.jsonl"))
    options = parser.parse_args()
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    Handler.ledger = Ledger(options.journal, options.rate)
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
