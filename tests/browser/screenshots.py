"""Takes the pictures in the docs: `python -m tests.browser.screenshots`, from a real stack with a past."""

import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.support.processes import ROOT
from tests.support.servers import RedisServer

from .past import fill_past
from .site import Site, chromium, running_site

AT = ROOT / "docs" / "screenshots"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 800}
PAGES = {
    "now": "/",
    "schedules": "/schedules",
    "schedule": "/schedules/import-rates",
    "jobs": "/jobs",
    "job": "/jobs/{job}",
    "dead-letters": "/dead",
    "day": "/day",
}
FULL = ("schedule", "day", "dead-letters")
"""Pages that are shown whole, not only what a window shows of them."""


def main() -> None:
    """Start it, let something happen, and take every page: wide and light, dark, and on a phone."""
    with tempfile.TemporaryDirectory() as folder, RedisServer() as redis:
        stores = redis.database(5), redis.database(6)
        with (
            running_site(Path(folder), f"sqlite:///{folder}/cronq.db", *stores) as site,
            sync_playwright() as it,
        ):
            fill_past(site.database)
            job = _let_something_happen(site)
            browser = it.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            for suffix, window, scheme in (
                ("", WIDE, "light"),
                ("-dark", WIDE, "dark"),
                ("-phone", PHONE, "light"),
            ):
                context = browser.new_context(
                    viewport=window, color_scheme=scheme, base_url=site.url, timezone_id="Europe/Paris"
                )
                page = context.new_page()
                for name, path in PAGES.items():
                    _take(page, path.format(job=job), AT / f"{name}{suffix}.png", whole=name in FULL)
                context.close()
            browser.close()


def _let_something_happen(site: Site) -> str:
    site.allow_steps(2)
    site.ask("demo.steps", tenant="globex")
    started = site.ask("demo.steps", tenant="acme")
    for _ in range(3):
        site.fail()
    site.wait_for_state(started, "RUNNING")
    site.allow_steps(4)
    return started


def _take(page: Page, path: str, at: Path, *, whole: bool) -> None:
    page.goto(path)
    page.wait_for_selector("#live.on")
    page.wait_for_timeout(1800)  # what is live has come in
    page.screenshot(path=at, full_page=whole)


if __name__ == "__main__":
    main()
