"""Renders the page's templates: everything is escaped, nothing comes from elsewhere."""

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cronq.app import Cronq
from cronq.store.tokens import Role
from cronq.views import last_line
from cronq.web import format as shown
from cronq.web import punctuality
from cronq.web.charts import chart, heat_map, sparkline

HERE: Final = Path(__file__).parent
COOKIE: Final = "cronq_token"

SAID: Final = {
    "paused": "Paused. Its next fire times will be recorded as skipped.",
    "resumed": "Resumed.",
    "triggered": "One job was asked for.",
    "cancelled": "It was told to stop.",
    "retried": "It is due again.",
    "discarded": "It is off the list.",
    "cancel_ticked": "Told to stop: {count}.",
    "cancel_jobs": "Told to stop: {count}.",
    "retry_ticked": "Due again: {count}.",
    "retry_jobs": "Due again: {count}.",
    "retry_dead": "Due again: {count}.",
    "discard_dead": "Off the list: {count}.",
    "batch_paused": "Paused: no further item starts; those that run go on.",
    "batch_retried": "Its failed items are due again.",
    "schedule_saved": "Saved. From now on it is planned like this.",
    "schedule_deleted": "Deleted. No further fire time becomes a job.",
    "backfill_started": "The backfill has begun.",
    "backfill_paused": "Paused: it starts no further job; those that run go on.",
    "backfill_cancelled": "It starts no further job; those that run go on.",
}
"""What the page says after an action; `count`: to how many."""

_environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(
    moment=shown.moment,
    relative=shown.relative,
    span=shown.span,
    chip=shown.chip,
    data=shown.data,
    last_line=last_line,
    ticks=shown.ticks,
    sparkline=sparkline,
    heat_map=heat_map,
    took_chart=lambda rows: chart(rows, punctuality.took, "How long it took"),
    late_chart=lambda rows: chart(rows, punctuality.late, "How late it started"),
)
_environment.tests["over"] = shown.over


def parts_of(request: Request) -> Cronq:
    """Return the parts that this application works with."""
    parts: Cronq = request.app.state.parts
    return parts


def page(request: Request, template: str, *, status: int = HTTPStatus.OK, **facts: Any) -> Response:  # noqa: ANN401
    """Return one page."""
    caller = getattr(request.state, "caller", None)
    text = _environment.get_template(template).render(
        path=request.url.path,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        may_operate=caller is not None and caller.role.includes(Role.OPERATOR),
        may_edit=caller is not None and caller.role.includes(Role.EDITOR),
        caller=None if caller is None else caller.name,
        signed_in=COOKIE in request.cookies,
        said=_said(request.query_params.get("said", ""), request.query_params.get("count", "")),
        **facts,
    )
    return HTMLResponse(
        text.encode(errors="backslashreplace"), status
    )  # half of a surrogate pair is no UTF-8


def _said(what: str, count: str) -> str:
    return SAID.get(what, "").format(count=count if count.isdecimal() else "")


def error_page(request: Request, *, status: int, title: str, detail: str) -> Response:
    """Return what went wrong as a page."""
    return page(request, "error.html", status=status, status_code=status, title=title, detail=detail)
