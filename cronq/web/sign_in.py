"""Signing in on the page: the token goes into a cookie that no script and no other site can use."""

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from cronq.store.tokens import check_token
from cronq.web.actions import form_of, local_path
from cronq.web.render import COOKIE, page, parts_of

TWO_WEEKS_S = 14 * 86400

router = APIRouter(include_in_schema=False)


@router.get("/login")
def ask(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """Ask for a token."""
    return page(request, "login.html", next=local_path(next), wrong=False)


@router.post("/login")
async def sign_in(request: Request) -> Response:
    """Check the token, and remember it in this browser."""
    given = await form_of(request)
    text, leads_to = given.get("token", "").strip(), local_path(given.get("next", "/"))
    if await to_thread.run_sync(check_token, parts_of(request).database, text) is None:
        return page(request, "login.html", status=403, next=leads_to, wrong=True)
    response = RedirectResponse(leads_to, status_code=303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, text, max_age=TWO_WEEKS_S, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout")
async def sign_out(_request: Request) -> Response:
    """Forget the token."""
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
