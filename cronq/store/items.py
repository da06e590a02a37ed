"""Streams the items of a fan-out from a query to a database of the user's own."""

import os
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import create_engine, text

from cronq.errors import Permanent

PAGE: Final = 1000


def query_items(query: str, url_variable: str) -> Iterator[Any]:
    """Yield one item per row: the first column is the item, the others are keyword arguments of its job.

    url_variable: the environment variable that has the database's address. Raises `Permanent` without it.
    """
    url = os.environ.get(url_variable)
    if not url:
        raise Permanent(
            f"the variable {url_variable} with the address of the items' database is not set here"
        )
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with engine.connect().execution_options(stream_results=True, yield_per=PAGE) as connection:
            for row in connection.execute(text(query)).mappings():
                (_name, item), *others = row.items()
                yield {"item": item, "kwargs": dict(others)}
    finally:
        engine.dispose()
