"""`cronq token`: who may use the API."""

import click

from cronq.cli.common import json_option, parts_of, print_json, print_table, short_time
from cronq.store.tokens import Role, create_token, list_tokens, revoke_token


@click.group()
def token() -> None:
    """Make, list and revoke the API's tokens."""


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.VIEWER.value,
    show_default=True,
    help="viewer: look; operator: also act on jobs and schedules; editor: also write schedules.",
)
@json_option
@click.pass_context
def create(context: click.Context, *, name: str, role: str, as_json: bool) -> None:
    """Make a token called NAME and print it: this once, for only its hash is stored."""
    text = create_token(parts_of(context).database, name, Role(role))
    if as_json:
        print_json({"name": name, "role": role, "token": text})
    else:
        click.echo(text)


@token.command("list")
@json_option
@click.pass_context
def list_command(context: click.Context, *, as_json: bool) -> None:
    """List the tokens, never their secrets."""
    tokens = list_tokens(parts_of(context).database)
    if as_json:
        items = [
            {"name": t.name, "role": t.role, "created_at": t.created_at, "revoked_at": t.revoked_at}
            for t in tokens
        ]
        print_json({"items": items})
        return
    print_table(
        "",
        ["NAME", "ROLE", "CREATED", "REVOKED"],
        [(t.name, t.role, short_time(t.created_at), short_time(t.revoked_at)) for t in tokens],
    )


@token.command()
@click.argument("name")
@click.pass_context
def revoke(context: click.Context, *, name: str) -> None:
    """Make the token called NAME worthless at once."""
    revoke_token(parts_of(context).database, name)
    click.echo(f"{name} is revoked")
