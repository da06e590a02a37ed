"""Serves the application in this process, until it is told to stop."""

import gc
import signal
import sys
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

GRACE_S: Final = 1
YOUNG: Final = 50_000
"""How many new objects there may be before Python looks for garbage among them."""


class Server(uvicorn.Server):
    """Ends the open event streams first, so that it need not wait for them."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop gracefully; a signal handler."""
        app: FastAPI = self.config.app  # type: ignore[assignment]
        app.state.feed.stop()
        super().handle_exit(sig, frame)


def serve(app: FastAPI, *, host: str, port: int) -> bool:
    """Serve `app`; return whether it could be started, once it has stopped."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops gracefully, then raises the signal once more: a stop that was asked for is a success.
        signal.signal(number, lambda *_: sys.exit(0))
    # What is there by now stays for ever: to look it through for garbage took a fifth of a second each time,
    # and everybody who follows a job waited. What a thousand followers are made of takes half as long.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
    server = Server(config)
    server.run()
    return server.started
