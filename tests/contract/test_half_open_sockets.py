"""A database server that does not answer any more, not even with a reset, is given up in seconds."""

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from cronq.store.database import Database

LONGEST_MS = 10_000


@contextlib.contextmanager
def tcp_of(connection: Any) -> Iterator[socket.socket]:
    with socket.socket(fileno=os.dup(connection.fileno())) as seen:
        yield seen


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="it is an option of Linux")
def test_a_packet_that_nobody_answers_ends_every_connection_to_postgresql(database: Database) -> None:
    if database.dialect == "sqlite":
        pytest.skip("SQLite has no connection")
    for engine in (database.engine, database._short._engine):
        with contextlib.closing(engine.raw_connection()) as pooled, tcp_of(pooled.driver_connection) as seen:
            assert 0 < seen.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= LONGEST_MS
