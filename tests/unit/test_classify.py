"""Failures are sorted: by what they are, by what they carry, by what caused them, and as users wish."""

import errno
import socket
import sqlite3
import subprocess
import urllib.error
from collections.abc import Iterator
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
import redis
import sqlalchemy.exc
from celery.exceptions import SoftTimeLimitExceeded

from cronq.errors import Permanent, WrongArguments
from cronq.retry import Kind, classify, register, retry_after_of
from cronq.retry.classify import _registered


class Carrying(Exception):
    """An error with attributes, as client libraries write them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("it failed")
        self.__dict__.update(attributes)


def answered(status: int, **headers: str) -> Carrying:
    return Carrying(response=SimpleNamespace(status_code=status, headers=headers))


def http_error(status: int, retry_after: str | None = None) -> urllib.error.HTTPError:
    headers = Message()
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return urllib.error.HTTPError("http://127.0.0.1/", status, "no", headers, None)


class NoSuchOrder(Permanent):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(), Kind.NETWORK),
        (BrokenPipeError(), Kind.NETWORK),
        (socket.gaierror(), Kind.NETWORK),
        (OSError(errno.ENETUNREACH, "no route"), Kind.NETWORK),
        (urllib.error.URLError("refused"), Kind.NETWORK),
        (redis.ConnectionError(), Kind.NETWORK),
        (Carrying(sqlstate="08006"), Kind.NETWORK),
        (answered(503), Kind.NETWORK),
        (Carrying(sqlstate="40P01"), Kind.DEADLOCK),
        (Carrying(pgcode="40001"), Kind.DEADLOCK),
        (sqlite3.OperationalError("database is locked"), Kind.DEADLOCK),
        (MemoryError(), Kind.RESOURCE_EXHAUSTED),
        (OSError(errno.ENOSPC, "disk full"), Kind.RESOURCE_EXHAUSTED),
        (Carrying(sqlstate="53300"), Kind.RESOURCE_EXHAUSTED),
        (TimeoutError(), Kind.TIMEOUT),
        (subprocess.TimeoutExpired("ls", 1), Kind.TIMEOUT),
        (SoftTimeLimitExceeded(), Kind.TIMEOUT),
        (Carrying(sqlstate="57014"), Kind.TIMEOUT),
        (answered(504), Kind.TIMEOUT),
        (answered(429), Kind.RATE_LIMITED),
        (http_error(429), Kind.RATE_LIMITED),
        (Carrying(status=429), Kind.RATE_LIMITED),
        (Carrying(response={"ResponseMetadata": {"HTTPStatusCode": 429}}), Kind.RATE_LIMITED),
        (Carrying(retry_after=3), Kind.RATE_LIMITED),
        (NoSuchOrder(), Kind.PERMANENT),
        (WrongArguments(), Kind.WRONG_ARGUMENTS),
        (ValueError(), Kind.ERROR),
        (OSError(), Kind.ERROR),
        (sqlite3.OperationalError("no such table: t"), Kind.ERROR),
        (http_error(404), Kind.ERROR),
        (Carrying(sqlstate="23505"), Kind.ERROR),
    ],
    ids=repr,
)
def test_failures_are_sorted(error: Exception, kind: Kind) -> None:
    assert classify(error) is kind


def test_an_error_that_says_nothing_is_judged_by_its_cause() -> None:
    outer = RuntimeError("the report failed")
    outer.__cause__ = ConnectionRefusedError()
    assert classify(outer) is Kind.NETWORK


def test_an_error_of_sqlalchemy_is_what_the_driver_raised() -> None:
    driver = Carrying(sqlstate="40P01")
    error = sqlalchemy.exc.OperationalError("UPDATE t", {}, driver)
    error.__cause__ = driver
    assert classify(error) is Kind.DEADLOCK


def test_a_chain_of_causes_that_bites_its_tail_ends() -> None:
    error = ValueError()
    error.__cause__ = error
    assert classify(error) is Kind.ERROR


@pytest.fixture
def registered() -> Iterator[None]:
    yield
    _registered.clear()


@pytest.mark.usefixtures("registered")
def test_what_a_user_registers_goes_before_all_else() -> None:
    register(Carrying, "permanent")
    register("builtins.ConnectionError", Kind.RESOURCE_EXHAUSTED)
    assert classify(Carrying(status=503)) is Kind.PERMANENT
    assert classify(ConnectionResetError()) is Kind.RESOURCE_EXHAUSTED


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="flaky"):
        register(ValueError, "flaky")


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Carrying(retry_after=12.5), 12.5),
        (Carrying(retry_after=timedelta(minutes=2)), 120),
        (Carrying(retry_after=-4), 0),
        (Carrying(retry_after=1e9), 86_400),
        (answered(429, **{"retry-after": "17"}), 17),
        (http_error(429, "8"), 8),
        (Carrying(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "5"}}}), 5),
        (answered(429, **{"Retry-After": "soon"}), None),
        (answered(429), None),
        (Carrying(retry_after=float("nan")), None),
        (Carrying(retry_after=True), None),
        (ValueError(), None),
    ],
)
def test_how_long_the_other_side_asked_to_wait(error: Exception, seconds: float | None) -> None:
    assert retry_after_of(error) == seconds
