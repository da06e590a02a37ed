"""Runs SQLAlchemy's statements with as little around them as possible: a simulation runs millions.

The text of a statement and what becomes of its values and columns are SQLAlchemy's own; left out are its
pool, events and cursors. `test_the_short_way_to_sql_is_the_same` lives whole lives both ways.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Delete, Select, TextClause, Update
from sqlalchemy.engine import IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData

SHORT = (Select, Update, Delete, TextClause)
"""Statements that go the short way; inserts, and lists of values, are rare and go the long one."""

Process = Callable[[Any], Any] | None


class Answer(IteratorResult[Any]):
    """Rows, and how many rows a statement changed."""

    rowcount: int = -1


@dataclass(slots=True)
class Prepared:
    """What is known of a statement before its values are."""

    compiled: Any
    columns: SimpleResultMetaData | None
    processors: list[tuple[int, Callable[[Any], Any]]]
    expands: bool


class FastConnection:
    """The part of a SQLAlchemy connection that cronq uses."""

    def __init__(self, connection: Connection, raw: sqlite3.Connection) -> None:
        self._connection, self._raw = connection, raw
        self._prepared: dict[Any, Prepared] = {}

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        if isinstance(parameters, list) or not isinstance(statement, SHORT):
            return self._connection.execute(statement, parameters)
        key = statement._generate_cache_key()
        prepared = self._prepared.get(key.key)
        if prepared is None:
            prepared = self._prepared[key.key] = self._prepare(statement, key)
        text, values = self._values(prepared, key, parameters)
        cursor = self._raw.execute(text, values)
        if prepared.columns is None:
            answer = Answer(SimpleResultMetaData(()), iter(()))
            answer.rowcount = cursor.rowcount
            return answer
        rows: Sequence[Any] = cursor.fetchall()
        if prepared.processors:
            rows = [_processed(row, prepared.processors) for row in rows]
        return Answer(prepared.columns, iter(rows))

    def _prepare(self, statement: Any, key: Any) -> Prepared:
        compiled = statement.compile(dialect=self._connection.dialect, cache_key=key)
        entries = compiled._result_columns
        if not entries and isinstance(statement, TextClause):
            # A text's columns have no types; its names are known once it has run.
            names = [each[0] for each in self._raw.execute(*_unbound(compiled)).description or ()]
            return Prepared(compiled, SimpleResultMetaData(names) if names else None, [], expands=False)
        found = [each.type._cached_result_processor(self._connection.dialect, None) for each in entries]
        return Prepared(
            compiled,
            SimpleResultMetaData([each.keyname for each in entries]) if entries else None,
            [(place, process) for place, process in enumerate(found) if process is not None],
            expands=bool(compiled.post_compile_params or compiled.literal_execute_params),
        )

    def _values(self, prepared: Prepared, key: Any, parameters: Any) -> tuple[str, list[Any]]:
        compiled = prepared.compiled
        values = compiled.construct_params(
            parameters, extracted_parameters=key.bindparams, escape_names=False
        )
        text, names, processors = compiled.string, compiled.positiontup, compiled._bind_processors
        if prepared.expands:
            expanded = compiled._process_parameters_for_postcompile(values)
            text, names = expanded.statement, expanded.positiontup
            values = {**values, **expanded.additional_parameters}
            processors = {**processors, **expanded.processors}
        return text, [
            values[name] if processors.get(name) is None else processors[name](values[name]) for name in names
        ]


def _processed(row: Any, processors: list[tuple[int, Callable[[Any], Any]]]) -> tuple[Any, ...]:
    values = list(row)
    for place, process in processors:
        values[place] = process(values[place])
    return tuple(values)


def _unbound(compiled: Any) -> tuple[str, list[None]]:
    return f"SELECT * FROM ({compiled.string}) LIMIT 0", [None] * len(compiled.positiontup)
