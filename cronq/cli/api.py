"""`cronq api`: the status API and its page."""

import sys

import click

from cronq.cli.common import parts_of
from cronq.errors import CronqError
from cronq.store.tokens import any_token


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65535))
@click.pass_context
def api(context: click.Context, *, host: str, port: int) -> None:
    """Serve the status API and its page.

    On another host than loopback this needs a token: cronq token create NAME --role viewer
    """
    try:
        from cronq.api.app import create_app  # noqa: PLC0415 - a worker needs no web framework
        from cronq.api.gate import is_loopback  # noqa: PLC0415
        from cronq.api.serve import serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cronq"):
            raise
        raise CronqError(
            f'the API is not installed ({error.name}); run: pip install "celery-cronq[api]"'
        ) from error
    parts = parts_of(context)
    if not is_loopback(host) and not any_token(parts.database):
        raise CronqError(
            f"without a token the API serves this machine only, and {host} is reachable from others. "
            "Make one with `cronq token create NAME --role viewer`, or leave --host out"
        )
    click.echo(f"cronq: the page and the API are at http://{host}:{port}/", err=True)
    if not serve(create_app(parts, host=host), host=host, port=port):
        sys.exit(1)
