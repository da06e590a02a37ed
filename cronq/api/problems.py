"""Every error is an RFC 9457 problem document that says what to do; none shows a traceback or a secret."""

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from cronq.errors import (
    BackfillRefused,
    BatchRefused,
    CronqError,
    JobRefused,
    ScheduleRefused,
    SchemaError,
    StoreUnavailable,
    UnknownBackfill,
    UnknownBatch,
    UnknownDeadLetter,
    UnknownJob,
    UnknownSchedule,
    VersionConflict,
)
from cronq.store.database import is_outage
from cronq.store.values import OUTAGES, BadValue
from cronq.telemetry.log import get_logger
from cronq.timing import InvalidTiming
from cronq.views import to_json
from cronq.web.render import error_page

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = "2"

log = get_logger(__name__)

_KINDS: Final[dict[type[Exception], tuple[int, str, str]]] = {
    UnknownJob: (404, "unknown-job", "There is no such job"),
    UnknownSchedule: (404, "unknown-schedule", "There is no such schedule"),
    UnknownBatch: (404, "unknown-batch", "There is no such batch"),
    BatchRefused: (409, "batch-refused", "The batch does not allow this now"),
    VersionConflict: (412, "version-conflict", "The schedule was changed meanwhile"),
    ScheduleRefused: (409, "schedule-refused", "The schedule does not allow this now"),
    UnknownDeadLetter: (404, "unknown-dead-letter", "There is no such dead letter"),
    UnknownBackfill: (404, "unknown-backfill", "There is no such backfill"),
    BackfillRefused: (409, "backfill-refused", "The backfill does not allow this now"),
    JobRefused: (422, "job-refused", "The job was refused"),
    InvalidTiming: (422, "invalid-timing", "The timing is wrong"),
    SchemaError: (503, "schema", "The database is not up to date"),
    StoreUnavailable: (503, "store-unavailable", "A store does not answer"),
}


class Problem(Exception):
    """An answer that is a problem document."""

    def __init__(self, status: int, code: str, detail: str, *, title: str | None = None, **more: Any) -> None:  # noqa: ANN401
        self.status, self.code, self.detail, self.more = status, code, detail, more
        self.title = title or HTTPStatus(status).phrase
        super().__init__(detail)


def answer(request: Request, problem: Problem) -> Response:
    """Return the document, or to a person's browser a page that says the same."""
    if wants_page(request):
        return error_page(request, status=problem.status, title=problem.title, detail=problem.detail)
    return problem_response(problem, request.url.path)


def wants_page(request: Request) -> bool:
    """Tell whether a person's browser asks for a page."""
    page = not request.url.path.startswith(("/api/", "/metrics", "/openapi.json"))
    return page and "text/html" in request.headers.get("accept", "")


def problem_response(problem: Problem, path: str) -> Response:
    """Return the document."""
    body = {
        "type": f"urn:cronq:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": path,
        "code": problem.code,
        **problem.more,
    }
    response = Response(to_json(body), status_code=problem.status, media_type=MEDIA_TYPE)
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = RETRY_AFTER_S
    if "retry_after" in problem.more:
        response.headers["Retry-After"] = str(problem.more["retry_after"])
    if problem.status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = 'Bearer realm="cronq"'
    return response


def install(app: FastAPI) -> None:
    """Make `app` answer every error with a problem document."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Problem, _problem)
    for kind in (CronqError, InvalidTiming):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(BadValue, _bad_value)
    for outage in OUTAGES:
        app.add_exception_handler(outage, _unexpected)
    app.add_exception_handler(Exception, _unexpected)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return answer(request, error)


def _known(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    return _unexpected(request, error) if problem is None else answer(request, problem)


def problem_of(error: Exception) -> Problem | None:
    """Return the problem that `error` is to a caller; None for a fault."""
    if isinstance(error, Problem):
        return error
    for kind, (status, code, title) in _KINDS.items():
        if isinstance(error, kind):
            return Problem(status, code, str(error), title=title)
    return None


def _bad_value(request: Request, error: Exception) -> Response:
    del error
    detail = "A value in this request cannot be stored or looked for; look for zero bytes and huge numbers"
    return answer(request, Problem(422, "bad-value", detail))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {
            "in": str(each["loc"][0]),
            "field": ".".join(map(str, each["loc"][1:])),
            "message": each["msg"].removeprefix("Value error, "),
        }
        for each in error.errors()
    ]
    said = "; ".join(f"{e['field'] or e['in']}: {e['message']}" for e in errors)
    problem = Problem(422, "invalid-request", f"Correct these and send it again: {said}", errors=errors)
    return answer(request, problem)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"Nothing is at {request.url.path}; the routes are listed at /docs"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} is not possible here; the routes are listed at /docs"
    response = answer(request, Problem(error.status_code, "http", detail))
    response.headers.update(error.headers or {})
    return response


def _unexpected(request: Request, error: Exception) -> Response:
    if is_outage(error):
        problem = Problem(
            503, "store-unavailable", "The database does not answer; nothing was changed. Try again soon"
        )
        return answer(request, problem)
    log.error("api.failed", path=request.url.path, method=request.method, error=repr(error))
    detail = "This is a fault of cronq; its log has the reason. Nothing is known to be changed"
    return answer(request, Problem(500, "fault", detail))
