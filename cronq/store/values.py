"""Which values cannot be stored, which have a text in them, and how many go into one statement."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, func, or_
from sqlalchemy.exc import DataError, InterfaceError, OperationalError

T = TypeVar("T")

BadValue = DataError
"""A value that the database cannot store, such as a text with a zero byte in PostgreSQL: for good."""

OUTAGES = (OperationalError, InterfaceError)
"""The database is away or busy; see `is_outage`."""


def contains(text: str, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that one of `columns` has `text` in it, in upper or lower case."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return or_(*(func.lower(column).like(f"%{escaped}%", escape="\\") for column in columns))


def chunks(values: Sequence[T], size: int = 1000) -> Iterator[Sequence[T]]:
    """Yield `values` in parts that fit into one statement: both databases bound its parameters."""
    return (values[start : start + size] for start in range(0, len(values), size))
