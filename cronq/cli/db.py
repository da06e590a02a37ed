"""`cronq db`: the database's schema."""

import click

from cronq.cli.common import parts_of
from cronq.store import schema


@click.group()
def db() -> None:
    """Make or check the database's schema."""


@db.command()
@click.pass_context
def upgrade(context: click.Context) -> None:
    """Bring the schema up to date; safe to run at any time, by several at once."""
    database = parts_of(context, schema=False).database
    before = schema.found_version(database)
    after = schema.upgrade(database)
    if before == after:
        click.echo(f"{database.url}: the schema is up to date ({after})")
    else:
        click.echo(f"{database.url}: the schema went from {before or 'nothing'} to {after}")


@db.command()
@click.pass_context
def status(context: click.Context) -> None:
    """Say which schema the database has, and fail unless it is the newest."""
    database = parts_of(context, schema=False).database
    schema.require_schema(database)
    click.echo(f"{database.url}: schema {schema.found_version(database)}, up to date")
