"""The pages: each asks for what it shows and no more, so that they stay fast however much is stored."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles

from cronq.web import actions, batches, day, dead, jobs, now, schedules, sign_in
from cronq.web.render import HERE, page

router = APIRouter(include_in_schema=False)


def install_pages(app: FastAPI) -> None:
    """Add the pages, their actions and their files to `app`."""
    for part in (now, schedules, jobs, batches, day, dead, actions, sign_in):
        app.include_router(part.router)
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


@router.get("/docs")
def docs(request: Request) -> Response:
    """List the API's routes."""
    described = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            group = groups.setdefault((route.get("tags") or ["other"])[0], [])
            group.append({"method": method.upper(), "path": path, "parameters": []} | route)
    return page(request, "docs.html", groups=groups)
