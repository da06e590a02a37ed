"""The pages of dead letters: jobs that failed for good, and messages that nobody could run."""

from collections import Counter
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from cronq.retry import Kind
from cronq.store.dead import DeadFilter, count_dead_letters, list_dead
from cronq.store.dead_messages import get_message, may_be_sent_back
from cronq.views import dead_fields, dead_message_fields, last_line
from cronq.web.jobs import cursor_of
from cronq.web.render import page, parts_of

PER_PAGE: Final = 50
LOOKED_AT: Final = 300
KINDS_SHOWN: Final = 6
FILTERS: Final = ("task", "schedule", "tenant", "kind")

router = APIRouter(include_in_schema=False)


@router.get("/dead")
def dead(request: Request, cursor: str = "") -> Response:
    """List the dead letters that fit, after what the newest of them have in common."""
    database = parts_of(request).database
    given = filters_of(dict(request.query_params))
    wanted = dead_filter(given)
    letters = list_dead(database, wanted, limit=LOOKED_AT, before=cursor_of(cursor))
    query = {name: value for name, value in given.items() if value}
    more = None
    if len(letters) > PER_PAGE:
        last = letters[PER_PAGE - 1]
        more = "?" + urlencode(query | {"cursor": f"{last.dead_at.isoformat()}~{last.id}"})
    items = [dead_fields(letter) for letter in letters]
    return page(
        request,
        "dead.html",
        items=items[:PER_PAGE],
        sorts=_sorts(items),
        count=count_dead_letters(database, wanted),
        given=given,
        kinds=list(Kind),
        query=urlencode(query),
        more=more,
    )


@router.get("/dead/all/{what}")
def all_dead(request: Request, what: str) -> Response:
    """Ask whether all the dead letters that fit are really meant."""
    given = {name: value for name, value in filters_of(dict(request.query_params)).items() if value}
    if what not in ("retry", "discard"):
        raise HTTPException(404)
    return page(
        request,
        "confirm.html",
        action=f"{what}_dead",
        label={"retry": "Retry", "discard": "Discard"}[what],
        count=count_dead_letters(parts_of(request).database, dead_filter(filters_of(given))),
        what="dead letter",
        given=given,
        back="/dead?" + urlencode(given),
    )


@router.get("/dead/{dead_id}")
def one_dead(request: Request, dead_id: str) -> Response:
    """Show a message as it came; a job has its own page."""
    row = get_message(parts_of(request).database, dead_id)
    if row is None:
        return RedirectResponse(f"/jobs/{dead_id}", status_code=303)
    return page(request, "message.html", message=dead_message_fields(row), whole=may_be_sent_back(row))


def filters_of(given: dict[str, str]) -> dict[str, str]:
    """Return the filters that a form or an address gives; an empty one is none."""
    return {name: given.get(name, "").strip() for name in FILTERS}


def dead_filter(given: dict[str, str]) -> DeadFilter:
    """Return what `filters_of` means."""
    return DeadFilter(
        task=given["task"] or None,
        schedule=given["schedule"] or None,
        tenant=given["tenant"] or None,
        kind=given["kind"] or None,
    )


def _sorts(items: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Return the newest of each sort of failure, and how many there are; nothing where all differ."""
    counts: Counter[tuple[Any, ...]] = Counter()
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for item in items:
        sort = (item["schedule"] or item["task"], item["kind"], last_line(item["error"]))
        counts[sort] += 1
        newest.setdefault(sort, item)
    return [(newest[sort], count) for sort, count in counts.most_common(KINDS_SHOWN) if count > 1]
