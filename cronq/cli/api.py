"""`cronq api`: the status API and its page."""

import signal
import sys
from types import FrameType

import click

from cronq.cli.common import parts_of
from cronq.errors import CronqError

GRACE_S = 1


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65535))
@click.pass_context
def api(context: click.Context, *, host: str, port: int) -> None:
    """Serve the status API and its page.

    On another host than loopback this needs a token: cronq token create NAME --role viewer
    """
    try:
        import uvicorn  # noqa: PLC0415 - a worker needs no web framework

        from cronq.api.app import create_app  # noqa: PLC0415
        from cronq.api.gate import is_loopback  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cronq"):
            raise
        raise CronqError(
            f'the API is not installed ({error.name}); run: pip install "celery-cronq[api]"'
        ) from error
    from cronq.store.tokens import any_token  # noqa: PLC0415

    parts = parts_of(context)
    if not is_loopback(host) and not any_token(parts.database):
        raise CronqError(
            f"without a token the API serves this machine only, and {host} is reachable from others. "
            "Make one with `cronq token create NAME --role viewer`, or leave --host out"
        )
    app = create_app(parts, host=host)

    class Server(uvicorn.Server):
        """Ends the open event streams first, so that it need not wait for them."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.feed.stop()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    click.echo(f"cronq: the page and the API are at http://{host}:{port}/", err=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops gracefully, then raises the signal once more: a stop that was asked for is a success.
        signal.signal(number, lambda *_: sys.exit(0))
    server = Server(config)
    server.run()
    if not server.started:
        sys.exit(1)
