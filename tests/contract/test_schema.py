"""The migrations make what the tables say, and a wrong schema is refused."""

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from cronq.errors import IncompleteSchema, SchemaError, StoreUnavailable
from cronq.store.database import Database
from cronq.store.schema import PATIENCE, VERSION_TABLE, require_schema, upgrade
from cronq.store.tables import metadata
from tests.support.server import free_port

STATES = ("SCHEDULED", "PENDING", "RUNNING", "RETRYING")


def test_the_migrations_and_the_tables_agree(database: Database) -> None:
    # Alembic takes SQLite's empty default for another one than its own.
    options = {"version_table": VERSION_TABLE, "compare_server_default": database.dialect == "postgresql"}
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_partial_indexes_cover_the_rows_that_the_tables_say(database: Database) -> None:
    # Alembic does not compare these.
    with database.engine.connect() as connection:
        found = inspect(connection)
        made = {index["name"]: index for table in metadata.tables for index in found.get_indexes(table)}
    for table in metadata.tables.values():
        for wanted in table.indexes:
            index = made[str(wanted.name)]
            where = wanted.dialect_options[database.dialect]["where"]
            condition = index.get("dialect_options", {}).get(f"{database.dialect}_where")
            assert bool(index["unique"]) == bool(wanted.unique), wanted.name
            assert (condition is None) == (where is None), wanted.name
            if where is not None:
                assert states_in(str(condition)) == states_in(str(where)), wanted.name


def states_in(condition: str) -> list[str]:
    return [state for state in STATES if state in condition]


def test_a_database_without_a_schema_is_refused_with_the_way_out(database_url: str) -> None:
    database = Database(database_url)
    with pytest.raises(SchemaError, match="cronq db upgrade"):
        require_schema(database)
    upgrade(database)
    require_schema(database)
    database.dispose()


def test_another_schema_is_refused(database: Database) -> None:
    with database.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="9999"):
        require_schema(database)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("ALTER TABLE cronq_batch DROP COLUMN callback_url", "column cronq_batch.callback_url:"),
        ("DROP TABLE cronq_token", "table cronq_token:"),
    ],
)
def test_a_schema_that_is_not_all_there_is_refused_and_stays_as_it_is(
    database: Database, change: str, missing: str
) -> None:
    with database.begin() as connection:
        connection.execute(text(change))
        connection.execute(text("INSERT INTO cronq_deploy VALUES ('code:x', 'stamp', 'now')"))
    for _ in range(2):
        with pytest.raises(IncompleteSchema) as caught:
            upgrade(database)
        assert missing in str(caught.value)
        assert "CRONQ_DATABASE_URL" in str(caught.value)
    with database.begin() as connection:
        assert connection.execute(text("SELECT stamp FROM cronq_deploy")).scalar_one() == "stamp"


def test_a_database_that_is_away_is_told_from_one_without_a_schema() -> None:
    url = f"postgresql+psycopg://me:hunter2@127.0.0.1:{free_port()}/x"
    with pytest.raises(StoreUnavailable) as caught:
        require_schema(Database(url))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_migration_may_take_longer_than_any_other_transaction(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(database_url)
    upgrade(database)
    seen: dict[str, str] = {}

    def look(config: Any, _revision: str) -> None:
        connection = config.attributes["connection"]
        seen.update({name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in PATIENCE})

    monkeypatch.setattr("cronq.store.schema.command.upgrade", look)
    upgrade(database)
    assert seen == {
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "lock_timeout": "1min",
    }
    with database.begin() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "3s"
    database.dispose()
