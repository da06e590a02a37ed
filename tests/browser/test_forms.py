"""What somebody fills in on the page: a range to run again."""

from datetime import timedelta

from playwright.sync_api import Page, expect

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
