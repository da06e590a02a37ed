"""What the page's buttons do. Each is an ordinary form, so that it works without a script."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from cronq.app import Cronq
from cronq.coordination.notices import send_notice
from cronq.errors import JobRefused, UnknownDeadLetter, UnknownJob
from cronq.store import backfills, batches, bulk, control, jobs
from cronq.store.backfills import BackfillState
from cronq.store.database import Database
from cronq.store.dead import discard_dead_letter, discard_dead_letters, retry_dead_letter, retry_dead_letters
from cronq.web.dead import dead_filter
from cronq.web.dead import filters_of as dead_filters_of
from cronq.web.jobs import filters_of, job_filter
from cronq.web.render import parts_of

NOTICES: Final = 100
"""Jobs that the leader is told of one by one; it finds more within a second."""

router = APIRouter(include_in_schema=False)


@router.post("/act/{what}")
async def act(request: Request, what: str) -> Response:
    """Do what a button says, and go back to where it stood."""
    body = (await request.body()).decode(errors="replace")
    given, ids = dict(parse_qsl(body)), parse_qs(body).get("id", [])
    back = given.get("next", "/")
    if what in SINGLE:
        leads_to = await to_thread.run_sync(SINGLE[what], parts_of(request), given)
        return RedirectResponse(leads_to or _back(back, SAID[what]), status_code=303)
    if what in MANY:
        count = await to_thread.run_sync(MANY[what], parts_of(request), given, ids)
        return RedirectResponse(_back(back, what, count), status_code=303)
    raise HTTPException(404)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    return dict(parse_qsl((await request.body()).decode(errors="replace")))


def local_path(path: str) -> str:
    """Return `path` if it leads to this page and nowhere else, or the first page."""
    try:
        split = urlsplit(path)
    except ValueError:
        return "/"
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and not split.netloc
    return path if safe else "/"


def _back(path: str, said: str, count: int | None = None) -> str:
    split = urlsplit(local_path(path))
    query = [(name, value) for name, value in parse_qsl(split.query) if name not in ("said", "count")]
    told = [("said", said)] + ([] if count is None else [("count", str(count))])
    return f"{split.path}?{urlencode([*query, *told])}"


# -- of one ------------------------------------------------------------------------------------------------


def _pause(parts: Cronq, given: dict[str, str]) -> None:
    note = given.get("note", "").strip()[:1000] or None
    stored = control.pause(parts.database, given.get("name", ""), note=note)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _resume(parts: Cronq, given: dict[str, str]) -> None:
    stored = control.resume(parts.database, given.get("name", ""), limit=parts.settings.catch_up_limit)
    send_notice(parts.redis, parts.settings.key_prefix, "schedule", schedule_id=stored.id)


def _run(parts: Cronq, given: dict[str, str]) -> str:
    job_id, _new = control.trigger(parts.database, given.get("name", ""))
    _tell(parts, [job_id])
    return f"/jobs/{job_id}?said=triggered"


def _cancel(parts: Cronq, given: dict[str, str]) -> None:
    jobs.request_cancel(parts.database, given.get("id", ""))


def _retry(parts: Cronq, given: dict[str, str]) -> None:
    jobs.retry_dead(parts.database, given.get("id", ""))
    _tell(parts, [given.get("id", "")])


def _retry_letter(parts: Cronq, given: dict[str, str]) -> None:
    retry_dead_letter(parts.database, given.get("id", ""))
    _tell(parts, [given.get("id", "")])


def _discard_letter(parts: Cronq, given: dict[str, str]) -> None:
    discard_dead_letter(parts.database, given.get("id", ""))


# -- of many: those that are ticked, or all that fit -------------------------------------------------------


def _cancel_ticked(parts: Cronq, _given: dict[str, str], ids: list[str]) -> int:
    return _each(ids, lambda job_id: jobs.request_cancel(parts.database, job_id))


def _retry_ticked(parts: Cronq, _given: dict[str, str], ids: list[str]) -> int:
    done = _each(ids, lambda job_id: jobs.retry_dead(parts.database, job_id))
    _tell(parts, ids)
    return done


def _cancel_jobs(parts: Cronq, given: dict[str, str], _ids: list[str]) -> int:
    return bulk.stop_jobs(parts.database, job_filter(filters_of(given), parts.database.clock()))


def _retry_jobs(parts: Cronq, given: dict[str, str], _ids: list[str]) -> int:
    return bulk.send_jobs_back(parts.database, job_filter(filters_of(given), parts.database.clock()))


def _retry_dead(parts: Cronq, given: dict[str, str], _ids: list[str]) -> int:
    done = retry_dead_letters(parts.database, dead_filter(dead_filters_of(given)))
    _tell(parts, done)
    return len(done)


def _discard_dead(parts: Cronq, given: dict[str, str], _ids: list[str]) -> int:
    return len(discard_dead_letters(parts.database, dead_filter(dead_filters_of(given))))


def _each(ids: Iterable[str], do: Callable[[str], object]) -> int:
    """Do it to each that it can still be done to; return to how many."""
    done = 0
    for job_id in ids:
        with suppress(JobRefused, UnknownJob, UnknownDeadLetter):
            do(job_id)
            done += 1
    return done


def _tell(parts: Cronq, ids: list[str]) -> None:
    for job_id in ids[:NOTICES]:
        send_notice(parts.redis, parts.settings.key_prefix, "job", job_id=job_id)


def _of_batch(act: Callable[[Database, str], object]) -> Callable[[Cronq, dict[str, str]], None]:
    def do(parts: Cronq, given: dict[str, str]) -> None:
        batch_id = given.get("id", "")
        act(parts.database, batch_id)
        send_notice(parts.redis, parts.settings.key_prefix, "batch", batch_id=batch_id)

    return do


def _of_backfill(wanted: BackfillState) -> Callable[[Cronq, dict[str, str]], None]:
    def do(parts: Cronq, given: dict[str, str]) -> None:
        backfills.set_state(parts.database, given.get("id", ""), wanted)
        send_notice(parts.redis, parts.settings.key_prefix, "backfill")

    return do


SINGLE: Final[dict[str, Callable[[Cronq, dict[str, str]], str | None]]] = {
    "pause": _pause,
    "resume": _resume,
    "run": _run,
    "cancel": _cancel,
    "retry": _retry,
    "retry_letter": _retry_letter,
    "discard_letter": _discard_letter,
    "pause_batch": _of_batch(batches.pause_batch),
    "resume_batch": _of_batch(batches.resume_batch),
    "cancel_batch": _of_batch(batches.cancel_batch),
    "retry_batch": _of_batch(batches.retry_failed),
    "pause_backfill": _of_backfill(BackfillState.PAUSED),
    "resume_backfill": _of_backfill(BackfillState.RUNNING),
    "cancel_backfill": _of_backfill(BackfillState.CANCELLED),
}
SAID: Final = {
    "pause": "paused",
    "resume": "resumed",
    "run": "triggered",
    "cancel": "cancelled",
    "retry": "retried",
    "retry_letter": "retried",
    "discard_letter": "discarded",
    "pause_batch": "batch_paused",
    "resume_batch": "resumed",
    "cancel_batch": "cancelled",
    "retry_batch": "batch_retried",
    "pause_backfill": "backfill_paused",
    "resume_backfill": "resumed",
    "cancel_backfill": "backfill_cancelled",
}
MANY: Final[dict[str, Callable[[Cronq, dict[str, str], list[str]], int]]] = {
    "cancel_ticked": _cancel_ticked,
    "retry_ticked": _retry_ticked,
    "cancel_jobs": _cancel_jobs,
    "retry_jobs": _retry_jobs,
    "retry_dead": _retry_dead,
    "discard_dead": _discard_dead,
}
