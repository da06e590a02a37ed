"""What somebody finds out on the page: what became of a fire time and why, what comes, who is there."""

import re
from datetime import datetime

import pytest
from playwright.sync_api import Page, expect

from cronq.schedule import Reason
from cronq.store.dead_messages import DeadMessage, record_message
from cronq.store.fire_words import REASONS
from cronq.store.fires import latest_fires
from cronq.store.schedules import get_schedule

from .site import Site

PAGES = [
    "/",
    "/schedules",
    "/schedules/import-rates",
    "/backfill?schedule=sync-crm&start=2026-01-01T00:00&end=2026-01-02T00:00&concurrency=1",
    "/edit?schedule=import-rates",
    "/delete?schedule=import-rates",
    "/jobs",
    "/jobs/{job}",
    "/batches",
    "/day",
    "/dead",
    "/docs",
]


def skipped_fire(site: Site, name: str) -> datetime:
    fires = latest_fires(site.database, get_schedule(site.database, name), 200)
    return next(each.fire_time for each in fires if each.reason == Reason.OVERLAP)


def test_it_says_why_a_fire_time_did_not_run(page: Page, site: Site) -> None:
    page.goto("/schedules/import-rates")
    asked = page.get_by_label("Why did it run, or not?", exact=False).locator("visible=true").last
    asked.fill(skipped_fire(site, "import-rates").strftime("%Y-%m-%dT%H:%M"))
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".why .card")).to_contain_text(REASONS[Reason.OVERLAP])
    page.goto("/schedules/import-rates?at=02:31")
    expect(page.locator(".why .card")).to_contain_text("It is not due at")


def test_the_calendar_leads_to_the_fire_times_of_a_day(page: Page) -> None:
    page.goto("/schedules/import-rates")
    cell = page.locator(".calendar a.cell").nth(20)
    expect(cell).to_have_attribute("aria-label", re.compile(r"\d+ completed"))
    cell.click()
    expect(page.locator("#fires h2")).to_contain_text("What became of each fire time from")
    assert page.locator("#fires tbody tr").count() > 50


@pytest.mark.parametrize("seconds", [300, 2])
def test_the_newest_cell_of_a_calendar_is_in_view(page: Page, site: Site, seconds: int) -> None:
    name = f"each-{seconds}"
    site.declare(name, task="demo.quick", every=seconds)
    page.goto(f"/schedules/{name}")
    calendar = page.get_by_role("group", name="calendar")
    expect(calendar.locator("thead")).to_contain_text({300: "20", 2: "+16"}[seconds])
    calendar.scroll_into_view_if_needed()
    expect(calendar.locator("tbody .cell").last).to_be_in_viewport(ratio=0.9)
    box, cell = calendar.bounding_box(), calendar.locator("tbody .cell").last.bounding_box()
    assert box
    assert cell
    assert box["x"] <= cell["x"] <= box["x"] + box["width"] - cell["width"]


def test_a_dead_letter_takes_two_lines_on_a_phone(page: Page, site: Site) -> None:
    job_id = site.fail()
    odd = DeadMessage(kind="malformed", error="it is not JSON " * 40, body=b"{", routing_key="celery")
    message_id = record_message(site.database, odd)
    page.goto("/dead")
    narrow = page.evaluate("innerWidth < 760")
    for letter in (f"/jobs/{job_id}", f"/dead/{message_id}"):
        card = page.get_by_role("row").filter(has=page.locator(f'a[href="{letter}"]'))
        expect(card.get_by_role("button", name=re.compile("Discard"))).to_be_visible()
        box = card.bounding_box()
        assert box
        assert box["height"] < 90 or not narrow
        card.locator("summary").click()
        expect(card.locator("pre")).to_be_visible()


def test_versions_show_what_an_edit_changed(page: Page) -> None:
    page.goto("/schedules/daily-report:acme")
    edit = page.get_by_role("region", name="Versions").get_by_role("listitem").first
    expect(edit).to_contain_text("timing.expression")
    expect(edit.locator("del").first).to_have_text('"30 5 * * *"')
    expect(edit.locator("ins").first).to_have_text('"0 6 * * *"')


def test_the_coming_day_is_drawn_by_minute(page: Page) -> None:
    page.goto("/day")
    expect(page.locator(".heat")).to_have_attribute("aria-label", re.compile(r"\d+ in all"))
    assert page.locator(".heat rect[class^=level]").count() == 1440  # one schedule fires each two seconds
    assert page.locator(".heat .level-5").count() >= 1


def test_who_is_there_is_shown(page: Page) -> None:
    page.goto("/")
    there = page.get_by_role("region", name="Beats and workers")
    expect(there).to_contain_text("leads")
    expect(there).to_contain_text("worker@")


def test_nothing_stands_out_of_the_window(page: Page, site: Site) -> None:
    job_id = site.ask("demo.quick")
    for path in PAGES:
        page.goto(path.format(job=job_id))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
