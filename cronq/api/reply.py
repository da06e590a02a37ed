"""Answers: JSON with instants in UTC, an ETag over exactly what is shown, and cursors that stay valid."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from cronq.api.models import ProblemOut
from cronq.api.problems import MEDIA_TYPE, Problem
from cronq.app import Cronq
from cronq.views import iso, to_json


def parts_of(request: Request) -> Cronq:
    """Return the parts that this application works with."""
    parts: Cronq = request.app.state.parts
    return parts


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:  # noqa: ANN401
    """Return `value` as JSON."""
    return Response(to_json(value), status, dict(headers or {}), media_type="application/json")


def etag_of(value: Any) -> str:  # noqa: ANN401
    """Return the entity tag of `value` as it is shown."""
    return f'"{hashlib.sha256(to_json(value).encode()).hexdigest()[:24]}"'


def matches(request: Request, etag: str) -> bool:
    """Tell whether the client has what `etag` names."""
    seen = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return etag in seen or "*" in seen


def version_of(request: Request) -> int | None:
    """Return the version that `If-Match` names."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    try:
        return int(given.strip().removeprefix("W/").strip('"'))
    except ValueError:
        raise Problem(
            400, "if-match", f"If-Match: {given} is no version; send the number that the ETag has"
        ) from None


def cursor_of(moment: datetime, job_id: str) -> str:
    """Return the cursor that goes on after the job `job_id`."""
    return base64.urlsafe_b64encode(json.dumps([iso(moment), job_id]).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """Return what `cursor_of` was given."""
    if cursor is None:
        return None
    try:
        moment, job_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return datetime.fromisoformat(moment).astimezone(UTC), str(job_id).encode().decode()
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        raise Problem(
            400, "cursor", "This cursor is not one of ours; start again without one", title="Wrong cursor"
        ) from None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how the problems with `statuses` are documented."""
    return {
        status: {"model": ProblemOut, "content": {MEDIA_TYPE: {}}, "description": "what to do instead"}
        for status in statuses
    }
