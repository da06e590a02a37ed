"""What somebody fills in on the page: a range to run again, a schedule."""

import re
from datetime import timedelta

from playwright.sync_api import Page, expect

from cronq.store.schedules import get_schedule

from .site import Site


def test_a_backfill_is_seen_first_started_and_followed(page: Page, site: Site) -> None:
    midnight = site.database.clock().replace(hour=0, minute=0)
    name = f"nightly-backup-{page.viewport_size['width']}" if page.viewport_size else ""
    site.declare(name, task="demo.quick", cron="0 0 * * *")
    page.goto(f"/schedules/{name}")
    page.get_by_role("link", name="Backfill…").click()
    page.get_by_label("From").fill(f"{midnight - timedelta(days=3):%Y-%m-%dT%H:%M}")
    page.get_by_label("Until").fill(f"{midnight:%Y-%m-%dT%H:%M}")
    page.keyboard.press("Enter")
    seen = page.get_by_role("status").filter(has_text="would become")
    expect(seen).to_contain_text("3 of 3 fire times would become jobs")
    seen.get_by_role("button", name="Start 3 jobs").click()
    expect(page.get_by_role("status").filter(has_text="has begun")).to_be_visible()
    row = page.get_by_role("region", name="Backfills").locator("tbody tr")
    expect(row.locator(".chip")).to_have_text("completed", timeout=30_000)
    expect(row).to_contain_text("3 completed")
    expect(row.get_by_role("button")).to_have_count(0)


def test_a_schedule_is_edited_after_a_look_and_the_leader_plans_by_it(page: Page, site: Site) -> None:
    name = f"edited-{page.viewport_size['width']}" if page.viewport_size else ""
    site.declare(name, task="demo.quick", cron="0 0 1 1 *", tz="Asia/Tokyo", kwargs={}, overlap="allow")
    page.goto(f"/schedules/{name}")
    page.get_by_role("link", name="Edit…").click()
    expect(page.get_by_label("Written as")).to_have_value("0 0 1 1 *")
    page.get_by_label("Written as").fill("*/2 * * * * *")
    page.get_by_label("Time zone").press("Enter")
    seen = page.get_by_role("status").filter(has_text="every 2 seconds")
    expect(seen.get_by_role("listitem")).to_have_count(5)
    expect(seen).to_contain_text("+09:00 Asia/Tokyo")
    expect(seen).to_be_in_viewport()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    coming = page.get_by_role("region", name="Next fire times").get_by_role("listitem").first
    expect(coming).to_contain_text(re.compile("now|in [0-9] s"))
    done = page.get_by_role("region", name="Fire times", exact=True).locator(".chip.completed")
    expect(done.nth(1)).to_be_visible(timeout=30_000)
    site.declare(name, task="demo.quick", cron="0 0 1 1 *")  # it makes no further jobs


def test_a_schedule_is_made_by_keyboard_and_what_is_wrong_is_said_at_its_field(
    page: Page, site: Site
) -> None:
    name = f"made-{page.viewport_size['width']}" if page.viewport_size else ""
    page.goto("/schedules")
    page.get_by_role("link", name="New schedule…").press("Enter")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type("demo.quick")
    page.keyboard.press("Tab")
    page.keyboard.type("every")
    page.get_by_label("Written as").fill("1h")
    page.get_by_text("Policy").press("Enter")
    page.get_by_label("Jitter").fill("a bit")
    page.keyboard.press("Enter")
    jitter = page.get_by_label("Jitter")
    expect(jitter).to_have_attribute("aria-invalid", "true")
    expect(jitter).to_have_accessible_description(re.compile("no length of time"))
    expect(jitter).to_have_value("a bit")
    jitter.fill("30s")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    declared = page.get_by_role("region", name="How it is declared")
    expect(declared).to_contain_text("up to 30.0 s")
    assert get_schedule(site.database, name).definition.timing == {"kind": "every", "seconds": 3600}


def test_who_was_overtaken_sees_by_what_and_saves_on_top_of_it(page: Page, site: Site) -> None:
    name = f"contested-{page.viewport_size['width']}" if page.viewport_size else ""
    asked = {"task": "demo.quick", "cron": "0 0 1 1 *", "kwargs": {"password": "hunter2-secret"}}
    site.declare(name, **asked)
    page.goto(f"/edit?schedule={name}")
    page.get_by_label("Written as").fill("0 0 2 1 *")
    site.declare(name, **asked | {"cron": "0 0 3 1 *"})
    page.get_by_role("button", name="Save").click()
    told = page.get_by_role("alert")
    expect(told).to_contain_text("somebody changed it meanwhile")
    expect(told.locator("del")).to_have_text('"0 0 1 1 *"')
    expect(told.locator("ins")).to_have_text('"0 0 3 1 *"')
    expect(page.get_by_label("Written as")).to_have_value("0 0 2 1 *")
    assert get_schedule(site.database, name).version == 2
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    stored = get_schedule(site.database, name)
    assert (stored.version, stored.definition.timing["expression"]) == (3, "0 0 2 1 *")
    assert stored.definition.kwargs == {"password": "hunter2-secret"}
