"""axe-core finds nothing serious on any page, light or dark, wide or narrow."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from cronq.store.dead_messages import DeadMessage, record_message

from .site import Site

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
PAGES = [
    "/",
    "/schedules",
    "/schedules/heartbeat",
    "/schedules/import-rates?at=02:30",
    "/schedules/daily-report:acme",
    "/backfill?schedule=sync-crm&start=2026-01-01T00:00&end=2026-01-02T00:00&concurrency=1",
    "/backfill?schedule=sync-crm&start=never&end=2026-01-02T00:00&concurrency=0",
    "/edit",
    "/edit?schedule=import-rates",
    "/delete?schedule=import-rates",
    "/jobs",
    "/jobs/{job}",
    "/jobs/x",
    "/jobs/all/retry?state=FAILED",
    "/dead",
    "/dead/all/discard",
    "/dead/{message}",
    "/batches",
    "/day",
    "/docs",
    "/login",
]


@pytest.fixture(scope="module")
def failed_job(site: Site) -> str:
    return site.fail()


@pytest.fixture(scope="module")
def dead_message(site: Site) -> str:
    odd = DeadMessage(kind="malformed", error="it is not JSON", body=b"{password", routing_key="celery")
    return record_message(site.database, odd)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    page: Page, site: Site, failed_job: str, dead_message: str, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = []
    for path in PAGES:
        page.goto(path.format(job=failed_job, message=dead_message))
        found += serious(page, path)
        if path.startswith("/edit"):
            found += serious_once_sent(page, path)
    assert found == []


def serious_once_sent(page: Page, path: str) -> list[str]:
    """Look at what comes of a form for a schedule: when it would run, what is wrong, what others did."""
    found = []
    for button, when in (("See", "30 2 * * *"), ("Save", "61 * * * *"), ("Save", "30 2 * * *")):
        page.get_by_label("Written as").fill(when)
        page.get_by_text("Policy").click()
        page.locator("form").evaluate("(form) => { form.noValidate = true; form.version.value = 0; }")
        page.get_by_role("button", name=button).click()
        found += serious(page, f"{path}, {button} {when}")
    return found


def serious(page: Page, what: str) -> list[str]:
    page.evaluate(AXE)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{what}: {each['id']} ({each['impact']}): {node['html']} {node['failureSummary']}"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
