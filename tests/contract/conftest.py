"""A migrated database for every test here, on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from cronq.store.database import Database
from cronq.store.schema import upgrade

from .rows import Rows


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    upgrade(database)
    yield database
    database.dispose()


@pytest.fixture
def rows(database: Database) -> Rows:
    return Rows(database)
