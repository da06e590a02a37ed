"""Puts the API and the page together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio import to_thread
from fastapi import FastAPI

from cronq.api import (
    backfill_form,
    backfills,
    batches,
    dead,
    delete_form,
    edit_form,
    events,
    history,
    jobs,
    metrics,
    problems,
    reply,
    schedules,
    system,
)
from cronq.api.feed import Feed
from cronq.api.gate import Gate
from cronq.api.rate import RateLimit
from cronq.app import Cronq
from cronq.coordination.listener import Listener
from cronq.coordination.redis_client import open_redis
from cronq.progress.board import REPORTS
from cronq.progress.channel import channel
from cronq.views import live_progress
from cronq.web.pages import install_pages

THREADS = 8
"""Requests that may ask the stores at the same time; the others wait for their turn."""


EVERYWHERE = (400, 401, 403, 411, 413, 421, 422, 429, 503)
"""Problems that any route may answer with."""


def create_app(parts: Cronq, *, host: str = "127.0.0.1") -> FastAPI:
    """Return the application that serves `parts` on `host`."""
    feed = Feed(parts.database, partial(live_progress, parts))

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        settings = parts.settings
        client = open_redis(settings.redis_url)
        reports = Listener(client, channel(client, settings.key_prefix, REPORTS), feed.progress)
        feed.start()
        reports.start()
        yield
        reports.stop()
        feed.stop()

    app = FastAPI(
        title="cronq",
        version="1",
        description="What every job does, what ran, what will run, what did not and why.",
        lifespan=live,
        docs_url=None,  # these two would load scripts from elsewhere; /docs is our own page
        redoc_url=None,
    )
    app.state.parts, app.state.feed = parts, feed
    problems.install(app)
    for part in (jobs, batches, backfills, schedules, history, dead, events, system, metrics):
        app.include_router(part.router, responses=reply.problems(*EVERYWHERE))
    for form in (backfill_form, edit_form, delete_form):
        app.include_router(form.router)
    install_pages(app)
    app.add_middleware(
        Gate,
        database=parts.database,
        host=host,
        max_body_bytes=2 * parts.settings.max_payload_bytes,
        rate=RateLimit(parts.settings.api_rate),
    )
    return app
