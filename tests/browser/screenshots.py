"""Takes the pictures in the docs: `python -m tests.browser.screenshots`, from a real stack with a past."""

import tempfile
from datetime import timedelta
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright

from tests.support.processes import ROOT, wait_for
from tests.support.servers import RedisServer

from .past import fill_past
from .site import Site, chromium, running_site

AT = ROOT / "docs" / "screenshots"
WIDE, TALL, PHONE = (1280, 860), (1280, 1180), (390, 800)
SHOTS = (
    ("now", "/", WIDE, "light"),
    ("schedules-dark", "/schedules", WIDE, "dark"),
    ("schedule", "/schedules/import-rates", TALL, "light"),
    ("jobs", "/jobs", WIDE, "light"),
    ("job", "/jobs/{job}", WIDE, "light"),
    ("batches", "/batches", WIDE, "light"),
    ("batch", "/batches/{batch}", WIDE, "light"),
    ("day", "/day", WIDE, "light"),
    ("dead-letters", "/dead", WIDE, "light"),
    ("schedule-dark", "/schedules/sync-crm", TALL, "dark"),
    ("now-phone", "/", PHONE, "light"),
    ("schedule-phone", "/schedules/daily-report:acme", PHONE, "light"),
    ("schedules-phone", "/schedules", PHONE, "light"),
    ("job-phone", "/jobs/{job}", PHONE, "dark"),
    ("backfill-dark", "/backfill?schedule=sync-crm&concurrency=2&start={start}&end={end}", WIDE, "dark"),
    ("edit", "/edit?schedule=import-rates", TALL, "light"),
    ("edit-phone", "/edit?schedule=send-digests", PHONE, "dark"),
)


def main() -> None:
    """Start it, let something happen, and take every page."""
    with tempfile.TemporaryDirectory() as folder, RedisServer() as redis:
        stores = redis.database(5), redis.database(6)
        with (
            running_site(Path(folder), f"sqlite:///{folder}/cronq.db", *stores) as site,
            sync_playwright() as it,
        ):
            fill_past(site.database)
            midnight = site.database.clock().replace(hour=0, minute=0)
            places = {
                "job": _let_something_happen(site),
                "batch": _fan_out(site),
                "start": f"{midnight - timedelta(days=3):%Y-%m-%dT%H:%M}",
                "end": f"{midnight:%Y-%m-%dT%H:%M}",
            }
            browser = it.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            for name, path, (width, height), scheme in SHOTS:
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme=scheme,
                    base_url=site.url,
                    timezone_id="Europe/Paris",
                )
                _take(context.new_page(), path.format_map(places), AT / f"{name}.png")
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


def _fan_out(site: Site) -> str:
    items = ["atlantis", *(f"region {number:02}" for number in range(20)), "ghana"]
    made = {"task": "demo.region", "cron": "0 3 * * *", "fan_out": items, "on_complete": "demo.sum"}
    httpx.put(f"{site.url}/api/schedules/region-totals", json=made | {"max_attempts": 1}).raise_for_status()
    answer = httpx.post(f"{site.url}/api/schedules/region-totals/trigger").json()

    def mostly_done() -> bool:
        found = httpx.get(f"{site.url}/api/batches/{answer['id']}").json()
        return found.get("done") == len(items) - 1

    wait_for(mostly_done, 30, "all but one region to be done")
    return str(answer["id"])


def _take(page: Page, path: str, at: Path) -> None:
    page.goto(path)
    if path.startswith("/edit"):
        page.get_by_role("button", name="See when it would run").click()
    if page.locator("[data-live]").count():
        page.wait_for_selector("#live.on")
        page.wait_for_timeout(1800)  # what is live has come in
    page.screenshot(path=at)


if __name__ == "__main__":
    main()
