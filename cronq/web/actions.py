"""What the page's buttons do. Each is an ordinary form, so that it works without a script."""

from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.store import control, jobs
from cronq.web.render import parts_of

router = APIRouter(include_in_schema=False)


@router.post("/act/{what}")
async def act(request: Request, what: str) -> Response:
    """Do what a button says, and go back to where it stood."""
    given = await form_of(request)
    action = ACTIONS.get(what)
    if action is None:
        raise HTTPException(404)
    leads_to = await to_thread.run_sync(action, parts_of(request), given)
    return RedirectResponse(leads_to or _back(given.get("next", "/"), SAID[what]), status_code=303)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    return dict(parse_qsl((await request.body()).decode(errors="replace")))


def local_path(path: str) -> str:
    """Return `path` if it leads to this page and nowhere else, or the first page."""
    split = urlsplit(path)
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and not split.netloc
    return path if safe else "/"


def _back(path: str, said: str) -> str:
    split = urlsplit(local_path(path))
    query = [(name, value) for name, value in parse_qsl(split.query) if name != "said"]
    return f"{split.path}?{urlencode([*query, ('said', said)])}"


def _pause(parts: Cronq, given: dict[str, str]) -> None:
    note = given.get("note", "").strip()[:1000] or None
    stored = control.pause(parts.database, given.get("name", ""), note=note)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _resume(parts: Cronq, given: dict[str, str]) -> None:
    stored = control.resume(parts.database, given.get("name", ""), limit=parts.settings.catch_up_limit)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _run(parts: Cronq, given: dict[str, str]) -> str:
    job_id, _new = control.trigger(parts.database, given.get("name", ""))
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)
    return f"/jobs/{job_id}?said=triggered"


def _cancel(parts: Cronq, given: dict[str, str]) -> None:
    jobs.request_cancel(parts.database, given.get("id", ""))


def _retry(parts: Cronq, given: dict[str, str]) -> None:
    job_id = given.get("id", "")
    jobs.retry_dead(parts.database, job_id)
    send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)


ACTIONS: dict[str, Callable[[Cronq, dict[str, str]], str | None]] = {
    "pause": _pause,
    "resume": _resume,
    "run": _run,
    "cancel": _cancel,
    "retry": _retry,
}
SAID = {"pause": "paused", "resume": "resumed", "run": "triggered", "cancel": "cancelled", "retry": "retried"}
