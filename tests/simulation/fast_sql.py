"""Runs SQLAlchemy's statements with as little around them as possible: a simulation runs millions.

The text of a statement and what becomes of its values and columns are SQLAlchemy's own; left out are its
pool, events and cursors. `test_the_short_way_to_sql_is_the_same` lives whole lives both ways.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Delete, Insert, Select, TextClause, Update
from sqlalchemy.engine import IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData

SHORT = (Select, CompoundSelect, Insert, Update, Delete, TextClause)

Process = Callable[[Any], Any] | None
Written = tuple[str, list[tuple[str, int | None, Process]]]
"""A text, and of each of its values: the name, the place in the list of that name, what is made of it."""


class Answer(IteratorResult[Any]):
    """Rows, and how many rows a statement changed."""

    rowcount: int = -1


@dataclass(slots=True)
class Changed:
    """Of a statement without rows: how many it changed."""

    rowcount: int


@dataclass(slots=True)
class Prepared:
    """What is known of a statement before its values are."""

    compiled: Any
    columns: SimpleResultMetaData | None
    processors: list[tuple[int, Callable[[Any], Any]]]
    lists: list[str]  #: the names of its values that are lists
    written: dict[tuple[int, ...], Written] = field(default_factory=dict)  #: by the lengths of its lists


@dataclass(slots=True)
class Known:
    """A statement that was run before: what is known of it, and the values that are part of it."""

    prepared: Prepared
    own: dict[str, Any]


class FastConnection:
    """The part of a SQLAlchemy connection that cronq uses."""

    def __init__(self, connection: Connection, raw: sqlite3.Connection) -> None:
        self._connection, self._raw = connection, raw
        self._prepared: dict[Any, Prepared] = {}

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        assert isinstance(statement, SHORT)
        many = isinstance(parameters, list)
        known = statement.__dict__.get("_simulated")
        if known is None:
            names = parameters[0] if many else parameters if isinstance(statement, Insert) else None
            known = statement.__dict__["_simulated"] = self._know(statement, names, many=many)
        prepared: Prepared = known.prepared
        if many:
            return self._execute_many(prepared, known.own, parameters)
        text, bound = _bound(prepared, {**known.own, **parameters} if parameters else known.own)
        cursor = self._raw.execute(text, bound)
        if prepared.columns is None:
            return Changed(cursor.rowcount)
        rows: Sequence[Any] = cursor.fetchall()
        if prepared.processors:
            rows = [_processed(row, prepared.processors) for row in rows]
        return Answer(prepared.columns, iter(rows))

    def _execute_many(
        self, prepared: Prepared, own: dict[str, Any], parameters: list[dict[str, Any]]
    ) -> Changed:
        bound = [_bound(prepared, {**own, **each}) for each in parameters]
        return Changed(self._raw.executemany(bound[0][0], [values for _text, values in bound]).rowcount)

    def _know(self, statement: Any, names: Mapping[str, Any] | None, *, many: bool) -> Known:
        """names: of the columns that an insert, or a list of updates, has values for."""
        key = statement._generate_cache_key()
        kind = (key.key, many, None if names is None else tuple(names))
        prepared = self._prepared.get(kind)
        if prepared is None:
            prepared = self._prepared[kind] = self._prepare(statement, key, names, many=many)
        own = prepared.compiled.construct_params(
            extracted_parameters=key.bindparams, escape_names=False, _check=False
        )
        return Known(prepared, own)

    def _prepare(self, statement: Any, key: Any, names: Mapping[str, Any] | None, *, many: bool) -> Prepared:
        compiled = statement.compile(
            dialect=self._connection.dialect,
            cache_key=key,
            column_keys=None if names is None else list(names),
            for_executemany=many,
        )
        assert not compiled.literal_execute_params
        assert not compiled.insert_prefetch, "it has defaults"
        assert not compiled.update_prefetch, "it has defaults"
        entries = compiled._result_columns
        if not entries and isinstance(statement, TextClause):
            # A text's columns have no types; its names are known once it has run.
            titles = [each[0] for each in self._raw.execute(*_unbound(compiled)).description or ()]
            return Prepared(compiled, SimpleResultMetaData(titles) if titles else None, [], [])
        found = [each.type._cached_result_processor(self._connection.dialect, None) for each in entries]
        return Prepared(
            compiled,
            SimpleResultMetaData([each.keyname for each in entries]) if entries else None,
            [(place, process) for place, process in enumerate(found) if process is not None],
            [compiled.bind_names[each] for each in compiled.post_compile_params],
        )


def _bound(prepared: Prepared, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the text of a statement, and its values in order."""
    lengths = tuple([len(values[name]) for name in prepared.lists])
    text, places = prepared.written.get(lengths) or _write(prepared, lengths, values)
    bound = []
    for name, place, process in places:
        value = values[name] if place is None else values[name][place]
        bound.append(value if process is None else process(value))
    return text, bound


def _write(prepared: Prepared, lengths: tuple[int, ...], values: Mapping[str, Any]) -> Written:
    compiled = prepared.compiled
    text, names, processors = compiled.string, compiled.positiontup, compiled._bind_processors
    items: dict[str, tuple[str, int]] = {}
    if prepared.lists:
        expanded = compiled._process_parameters_for_postcompile(dict(values))
        text, names = expanded.statement, expanded.positiontup
        processors = {**processors, **expanded.processors}
        for name, parts in expanded.parameter_expansion.items():
            items.update((part, (name, place)) for place, part in enumerate(parts))
    places = [(*items.get(name, (name, None)), processors.get(name)) for name in names]
    written = prepared.written[lengths] = text, places
    return written


def _processed(row: Any, processors: list[tuple[int, Callable[[Any], Any]]]) -> tuple[Any, ...]:
    values = list(row)
    for place, process in processors:
        values[place] = process(values[place])
    return tuple(values)


def _unbound(compiled: Any) -> tuple[str, list[None]]:
    return f"SELECT * FROM ({compiled.string}) LIMIT 0", [None] * len(compiled.positiontup)
