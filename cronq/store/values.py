"""Which values cannot be stored, which have a text in them, and how many go into one statement."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, func, or_
from sqlalchemy.exc import DataError, InterfaceError, OperationalError

T = TypeVar("T")

BadValue = DataError
"""A value that the database cannot store, such as a text with a zero byte in PostgreSQL: for good."""

OUTAGES = (OperationalError, InterfaceError)
"""The database is away or busy; see `is_outage`."""


MOST_LEVELS = 100
"""Of lists and objects within each other: what masks and shows JSON goes down a few hundred at most."""


def is_too_deep(value: object, written: str) -> bool:
    """Tell whether `value`, whose JSON is `written`, is nested more than `MOST_LEVELS` deep."""
    if written.count("[") + written.count("{") <= MOST_LEVELS:
        return False
    layer = [value]
    for _ in range(MOST_LEVELS + 1):
        nested = [each for each in layer if isinstance(each, Mapping | list | tuple)]
        layer = [inner for each in nested for inner in (each.values() if isinstance(each, Mapping) else each)]
    return bool(layer)


def contains(text: str, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that one of `columns` has `text` in it, in upper or lower case."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return or_(*(func.lower(column).like(f"%{escaped}%", escape="\\") for column in columns))


def chunks(values: Sequence[T], size: int = 1000) -> Iterator[Sequence[T]]:
    """Yield `values` in parts that fit into one statement: both databases bound its parameters."""
    return (values[start : start + size] for start in range(0, len(values), size))
