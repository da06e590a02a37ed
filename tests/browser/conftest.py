"""A real headless browser before a running installation."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.server import ServerMissing
from tests.support.servers import RedisServer

from .past import fill_past
from .site import Site, chromium, running_site

WINDOWS = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 780}}


# Of the package, not of the session: Playwright keeps an event loop in this thread while it is
# there, and then no other test could start one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    try:
        program = chromium()
    except ServerMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        # Without its sandbox, as root in a container can have none; it meets nothing but our own page.
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def site(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    redis_url, broker_url = redis_server.database(5), redis_server.database(6)
    with running_site(folder, f"sqlite:///{folder / 'cronq.db'}", redis_url, broker_url) as started:
        fill_past(started.database)
        yield started


@pytest.fixture(params=list(WINDOWS))
def page(request: pytest.FixtureRequest, browser: Browser, site: Site) -> Iterator[Page]:
    """A window of each width; a page that fetches from elsewhere, or whose script fails, fails the test."""
    context = browser.new_context(viewport=WINDOWS[request.param], base_url=site.url)
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("request", lambda asked: asked.url.startswith(site.url) or troubles.append(asked.url))
    yield opened
    context.close()
    assert not troubles
