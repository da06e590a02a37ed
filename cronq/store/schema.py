"""Is the database's schema ours? Checks it, and brings it up to date."""

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from cronq.errors import IncompleteSchema, SchemaError, StoreUnavailable
from cronq.store.database import Database, is_outage
from cronq.store.tables import metadata

MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "cronq_schema"
PATIENCE = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "lock_timeout": "60s"}
"""Of a migration: an index over millions of jobs takes minutes, and others wait for their turn meanwhile."""

# Alembic tells at INFO what it is about to look at, on every start of every process.
logging.getLogger("alembic").setLevel(logging.WARNING)


def require_schema(database: Database) -> None:
    """Raise `SchemaError` unless the schema is the newest, `StoreUnavailable` if nobody answers."""
    found, wanted = found_version(database), wanted_version()
    if found != wanted:
        raise SchemaError(database.url, found, wanted)


def found_version(database: Database) -> str | None:
    """Return the version of the database's schema, or None if it has none."""
    try:
        with database.autocommit() as connection:
            return _context(connection).get_current_revision()
    except Exception as error:
        if is_outage(error):
            raise StoreUnavailable("the database", database.url, error) from error
        raise


def wanted_version() -> str:
    """Return the version that this code works with."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def upgrade(database: Database) -> str:
    """Apply every missing migration in one transaction, and return the version reached.

    Several processes may call this at once: the others wait, and then find nothing to do. Raises
    `IncompleteSchema` if tables or columns are missing all the same.
    """
    try:
        with database.begin() as connection:
            if database.dialect == "postgresql":
                for name, value in PATIENCE.items():
                    connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('cronq_schema'))")
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            _require_all(connection, database.url)
    except Exception as error:
        if is_outage(error):
            raise StoreUnavailable("the database", database.url, error) from error
        raise
    return wanted_version()


def _require_all(connection: Connection, url: str) -> None:
    """Raise `IncompleteSchema` if a table or a column is missing, whatever the version says."""
    looked = inspect(connection)
    there = {
        table: {each["name"] for each in looked.get_columns(table)} for table in looked.get_table_names()
    }
    missing = [
        f"column {table.name}.{column.name}" if table.name in there else f"table {table.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if column.name not in there.get(table.name, ())
    ]
    if missing:
        raise IncompleteSchema(url, wanted_version(), list(dict.fromkeys(missing)))


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config
