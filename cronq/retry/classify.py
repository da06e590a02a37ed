"""Names the sort of a failure: by what a user registered, by what the error carries, by a table of classes.

The table's keys are full class names, so that no library is imported for it; the nearest base class counts.
An error that says nothing by itself is judged by its `__cause__`.
"""

import errno
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from cronq.retry.kinds import Kind

LONGEST_RETRY_AFTER_S: Final = 86_400.0
LONGEST_CHAIN: Final = 8

TABLE: Final[Mapping[str, Kind]] = {
    "aiohttp.client_exceptions.ClientConnectionError": Kind.NETWORK,
    "amqp.exceptions.ConnectionError": Kind.NETWORK,
    "billiard.exceptions.SoftTimeLimitExceeded": Kind.TIMEOUT,
    "botocore.exceptions.HTTPClientError": Kind.NETWORK,
    "builtins.ConnectionError": Kind.NETWORK,
    "builtins.MemoryError": Kind.RESOURCE_EXHAUSTED,
    "builtins.TimeoutError": Kind.TIMEOUT,
    "cronq.errors.Permanent": Kind.PERMANENT,
    "cronq.errors.WrongArguments": Kind.WRONG_ARGUMENTS,
    "http.client.HTTPException": Kind.NETWORK,
    "httpx.TimeoutException": Kind.TIMEOUT,
    "httpx.TransportError": Kind.NETWORK,
    "kombu.exceptions.OperationalError": Kind.NETWORK,
    "redis.exceptions.ConnectionError": Kind.NETWORK,
    "redis.exceptions.OutOfMemoryError": Kind.RESOURCE_EXHAUSTED,
    "redis.exceptions.TimeoutError": Kind.TIMEOUT,
    "requests.exceptions.ConnectionError": Kind.NETWORK,
    "requests.exceptions.Timeout": Kind.TIMEOUT,
    "socket.gaierror": Kind.NETWORK,
    "sqlalchemy.exc.TimeoutError": Kind.RESOURCE_EXHAUSTED,  # no connection of the pool became free
    "subprocess.TimeoutExpired": Kind.TIMEOUT,
    "urllib.error.URLError": Kind.NETWORK,
    "urllib3.exceptions.HTTPError": Kind.NETWORK,
    "urllib3.exceptions.TimeoutError": Kind.TIMEOUT,
}
"""Full name of an exception class → the sort of failure that it and its subclasses are."""

_ERRNO: Final[Mapping[object, Kind]] = {
    errno.ENOSPC: Kind.RESOURCE_EXHAUSTED,
    errno.EDQUOT: Kind.RESOURCE_EXHAUSTED,
    errno.EMFILE: Kind.RESOURCE_EXHAUSTED,
    errno.ENFILE: Kind.RESOURCE_EXHAUSTED,
    errno.ENOMEM: Kind.RESOURCE_EXHAUSTED,
    errno.ENETDOWN: Kind.NETWORK,
    errno.ENETUNREACH: Kind.NETWORK,
    errno.EHOSTDOWN: Kind.NETWORK,
    errno.EHOSTUNREACH: Kind.NETWORK,
}
_SQLSTATE: Final[Mapping[str, Kind]] = {
    "08": Kind.NETWORK,
    "40": Kind.DEADLOCK,
    "53": Kind.RESOURCE_EXHAUSTED,
    "55P03": Kind.DEADLOCK,
    "57014": Kind.TIMEOUT,
    "57P": Kind.NETWORK,
}
"""Beginnings of a SQLSTATE, as PostgreSQL's manual lists them in its appendix A."""
_MYSQL: Final[Mapping[object, Kind]] = {
    1040: Kind.RESOURCE_EXHAUSTED,
    1205: Kind.DEADLOCK,
    1213: Kind.DEADLOCK,
    2003: Kind.NETWORK,
    2006: Kind.NETWORK,
    2013: Kind.NETWORK,
}
_HTTP: Final[Mapping[object, Kind]] = {
    408: Kind.TIMEOUT,
    429: Kind.RATE_LIMITED,
    502: Kind.NETWORK,
    503: Kind.NETWORK,
    504: Kind.TIMEOUT,
    507: Kind.RESOURCE_EXHAUSTED,
}
_HTTP_ERRORS: Final = range(400, 600)

_registered: dict[str, Kind] = {}


def register(error: type[BaseException] | str, kind: Kind | str) -> None:
    """Sort `error` (a class, or its full name) and its subclasses under `kind`, before all else."""
    _registered[error if isinstance(error, str) else _name(error)] = Kind(kind)


def classify(error: BaseException) -> Kind:
    """Name the sort of failure that `error` is."""
    for each in _chain(error):
        kind = _by_class(each, _registered) or _by_what_it_carries(each) or _by_class(each, TABLE)
        if kind is not None:
            return kind
    return Kind.ERROR


def retry_after_of(error: BaseException) -> float | None:
    """Return how many seconds the other side asked to wait, at most a day; None: it did not say.

    It is the error's `retry_after` (seconds or a timedelta), else the `Retry-After` of its HTTP response.
    """
    for each in _chain(error):
        for given in (getattr(each, "retry_after", None), _header(each)):
            seconds = _seconds(given)
            if seconds is not None:
                return min(seconds, LONGEST_RETRY_AFTER_S)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(LONGEST_CHAIN):
        if each is None:
            return
        yield each
        each = each.__cause__


def _by_class(error: BaseException, table: Mapping[str, Kind]) -> Kind | None:
    return next((table[_name(base)] for base in type(error).__mro__ if _name(base) in table), None)


def _by_what_it_carries(error: BaseException) -> Kind | None:
    if _seconds(getattr(error, "retry_after", None)) is not None:
        return Kind.RATE_LIMITED
    status = _status(error)
    if status is not None:
        return _HTTP.get(status, Kind.ERROR)
    if isinstance(error, OSError) and error.errno in _ERRNO:
        return _ERRNO[error.errno]
    return _by_database_code(error)


def _by_database_code(error: BaseException) -> Kind | None:
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if isinstance(state, str):
        return next((kind for start, kind in _SQLSTATE.items() if state.startswith(start)), None)
    module, first = type(error).__module__.partition(".")[0], next(iter(error.args), None)
    if module in ("pymysql", "MySQLdb"):
        return _MYSQL.get(first)
    return Kind.DEADLOCK if module == "sqlite3" and "is locked" in str(first) else None


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error, if it is one of an error."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        found = [response.get("ResponseMetadata", {}).get("HTTPStatusCode")]
    else:
        names = ("status_code", "status", "code")
        found = [getattr(where, name, None) for where in (response, error) for name in names]
    return next((n for n in found if isinstance(n, int) and n in _HTTP_ERRORS), None)


def _header(error: BaseException) -> Any:  # noqa: ANN401
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    if not hasattr(headers, "items"):
        return None
    return next((value for name, value in headers.items() if str(name).lower() == "retry-after"), None)


def _seconds(given: Any) -> float | None:  # noqa: ANN401 - whatever another library wrote there
    """Return the seconds that `given` means: a number, a timedelta, or a header's text."""
    if isinstance(given, timedelta):
        return max(0.0, given.total_seconds())
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return max(0.0, float(given)) if given == given else None  # noqa: PLR0124 - not a number
    if not isinstance(given, str):
        return None
    if given.strip().isdecimal():
        return float(given)
    try:
        moment = parsedate_to_datetime(given)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _name(cls: type[BaseException]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
