"""Who is let in? No request gets past without a right to it, from another site, or under another host's name.

Without any token the API is open to everybody on this machine, and only there. As soon as a token exists, a
token is asked for everywhere.
"""

import math
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlsplit

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from cronq.api.problems import Problem, answer, problem_response, wants_page
from cronq.api.rate import RateLimit
from cronq.store.database import Database, is_outage
from cronq.store.tokens import Role, any_token, check_token
from cronq.web.render import COOKIE

OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz", "/login", "/logout", "/static/")
SAFE: Final = ("GET", "HEAD", "OPTIONS")

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    role: Role


class Gate:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, database: Database, *, host: str, max_body_bytes: int, rate: RateLimit
    ) -> None:
        self._app, self._database, self._rate = app, database, rate
        self._loopback = is_loopback(host)
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or answer why not."""
        if scope["type"] == "websocket":
            await self._let_in_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = await self._refuse(Request(scope))
        await (refusal or self._app)(scope, receive, send_safely)

    async def _let_in_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request({**scope, "type": "http", "method": "GET"})
        # A browser lets any site's page open a socket, with the cookie: where it comes from counts here, too.
        refusal = self._refuse_site(request) or await self._refuse(request)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).send_denial_response(refusal)

    async def _refuse(self, request: Request) -> Response | None:
        try:
            return self._refuse_form(request) or await self._refuse_caller(request)
        except Exception as error:
            if not is_outage(error):
                raise
            detail = "The database does not answer, so nobody's token can be checked. Try again soon"
            return problem_response(Problem(503, "store-unavailable", detail), request.url.path)

    def _refuse_site(self, request: Request) -> Response | None:
        if not _is_cross_site(request.headers, _host_of(f"//{request.headers.get('host', '')}")):
            return None
        detail = "Another site's page sent this. Send it from cronq's own page, or without a browser"
        return problem_response(Problem(403, "cross-site", detail), request.url.path)

    def _refuse_form(self, request: Request) -> Response | None:
        headers, path = request.headers, request.url.path
        host = _host_of(f"//{headers.get('host', '')}")
        if self._loopback and not is_loopback(host or ""):
            detail = f"This API serves 127.0.0.1 and localhost, not {host or 'no name'}"
            return problem_response(Problem(421, "wrong-host", detail), path)
        if request.method in SAFE:
            return None
        if (refusal := self._refuse_site(request)) is not None:
            return refusal
        length = headers.get("content-length")
        if length is None and "transfer-encoding" in headers:
            return problem_response(Problem(411, "length-required", "Say Content-Length"), path)
        if length is not None and (not length.isdigit() or int(length) > self._max_body_bytes):
            detail = f"The body may have {self._max_body_bytes} bytes; store the data and pass a reference"
            return problem_response(Problem(413, "too-large", detail), path)
        return None

    async def _refuse_caller(self, request: Request) -> Response | None:
        path = request.url.path
        if path.startswith(OPEN_PATHS):
            return None
        given = _token_of(request)
        address = request.client.host if request.client is not None else ""
        token = await to_thread.run_sync(check_token, self._database, given) if given else None
        if (wait_s := self._rate.wait_s(address if token is None else f"token {token.id}")) > 0:
            return answer(request, too_many(wait_s))
        if token is not None:
            caller = Caller(token.name, token.role)
        elif self._loopback and not await to_thread.run_sync(any_token, self._database):
            caller = Caller("local", Role.EDITOR)
        elif wants_page(request):
            return RedirectResponse(f"/login?next={quote(path)}", status_code=303)
        else:
            wrong = "This token is unknown or revoked." if given else "A token is needed."
            detail = f"{wrong} Make one with `cronq token create NAME --role viewer`, and send it as Bearer"
            return problem_response(Problem(401, "sign-in", detail), path)
        request.scope.setdefault("state", {})["caller"] = caller
        needed = Role.VIEWER if request.method in SAFE else Role.OPERATOR
        if not caller.role.includes(needed):
            return answer(request, forbidden(caller, needed))
        return None


def caller_of(request: Request) -> Caller:
    """Return who asks."""
    caller: Caller = request.state.caller
    return caller


def require_role(request: Request, needed: Role) -> Caller:
    """Return who asks; raise a problem if they may not."""
    caller = caller_of(request)
    if not caller.role.includes(needed):
        raise forbidden(caller, needed)
    return caller


def forbidden(caller: Caller, needed: Role) -> Problem:
    """Return the answer to somebody whose role does not reach."""
    detail = (
        f"The token {caller.name!r} has the role {caller.role}; this takes {needed}. Ask for such a token"
    )
    return Problem(403, "role", detail)


def too_many(wait_s: float) -> Problem:
    """Return the answer to somebody who asks more often than CRONQ_API_RATE allows."""
    seconds = math.ceil(wait_s)
    detail = (
        f"This is more than CRONQ_API_RATE allows. Ask again in {seconds} s; to follow a job, use its events "
        "or ?wait= rather than asking over and over"
    )
    return Problem(429, "too-many-requests", detail, retry_after=seconds)


def is_loopback(host: str) -> bool:
    """Tell whether `host` can be reached from this machine only."""
    host = host.strip("[]")
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_cross_site(headers: Headers, host: str | None) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        # No page can set this header; where a browser sends it, it says more than Origin, which may be null.
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != headers.get("host") or host is None
    except ValueError:
        return True


def _token_of(request: Request) -> str | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    return request.cookies.get(COOKIE)
