"""Which values cannot be stored, and which have a text in them."""

from typing import Any

from sqlalchemy import ColumnElement, func, or_
from sqlalchemy.exc import DataError, InterfaceError, OperationalError

BadValue = DataError
"""A value that the database cannot store, such as a text with a zero byte in PostgreSQL: for good."""

OUTAGES = (OperationalError, InterfaceError)
"""The database is away or busy; see `is_outage`."""


def contains(text: str, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that one of `columns` has `text` in it, in upper or lower case."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return or_(*(func.lower(column).like(f"%{escaped}%", escape="\\") for column in columns))
