"""What somebody does on the page: watch, pause, trigger, send back, follow to the end."""

from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from .site import Site


def row_of(page: Page, name: str) -> Locator:
    return page.locator("tr", has=page.get_by_role("link", name=name, exact=True))


def test_a_progress_bar_moves_while_one_looks(page: Page, site: Site) -> None:
    site.allow_steps(3)
    job_id = site.ask("demo.steps")
    page.goto("/")
    bar = page.locator(f'[data-job="{job_id}"]')
    expect(bar.locator("progress")).to_have_attribute("value", "30")
    marked = page.evaluate("window.sameDocument = true")
    site.allow_steps(7)
    expect(bar.locator(".percent")).to_have_text("70 %")
    assert page.evaluate("window.sameDocument") == marked  # nobody reloaded it
    site.allow_steps(10)
    expect(bar).to_have_count(0)


def test_a_job_is_followed_to_its_end(page: Page, site: Site) -> None:
    site.allow_steps(2)
    job_id = site.ask("demo.steps")
    page.goto(f"/jobs/{job_id}")
    expect(page.locator(".head .chip")).to_have_text("running")
    expect(page.locator(".banner .percent")).to_have_text("20 %")
    expect(page.get_by_role("link", name="Flower")).to_have_attribute(
        "href", f"http://127.0.0.1:5555/task/{job_id}"
    )
    site.allow_steps(10)
    expect(page.locator(".head .chip")).to_have_text("completed")
    expect(page.locator(".way .done")).to_have_count(5)
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("completed")


def test_a_schedule_is_paused_with_a_note_and_resumed(page: Page, site: Site) -> None:
    page.goto("/schedules")
    row = row_of(page, "nightly-backup")
    row.get_by_label("Pause nightly-backup").click()
    row.get_by_label("Why?").fill("the disk is full")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    row = row_of(page, "nightly-backup")
    expect(row).to_contain_text("the disk is full")
    row.get_by_label("Resume nightly-backup").click()
    expect(row_of(page, "nightly-backup").locator(".chip.active")).to_be_visible()


def test_a_schedule_is_run_by_hand_and_its_job_followed(page: Page, site: Site) -> None:
    page.goto("/schedules")
    page.get_by_role("link", name="nightly-backup", exact=True).click()
    page.get_by_label("Run now nightly-backup").click()
    expect(page).to_have_url(f"{site.url}/jobs/{page.url.rsplit('/', 1)[1]}")
    expect(page.locator(".head .chip")).to_have_text("completed")
    expect(page.get_by_text("manual")).to_be_visible()


def test_a_dead_letter_is_sent_back(page: Page, site: Site) -> None:
    job_id = site.fail()
    page.goto("/dead")
    row = page.locator("tr", has=page.locator(f'a[href="/jobs/{job_id}"]'))
    expect(row).to_contain_text("said 503")
    site.mend()
    row.get_by_label(f"Retry {job_id}").click()
    expect(page.get_by_role("status").filter(has_text="due again")).to_be_visible()
    page.goto(f"/jobs/{job_id}")
    expect(page.locator(".head .chip")).to_have_text("completed")


def test_a_letter_is_discarded_and_stays_in_the_history(page: Page, site: Site) -> None:
    job_id = site.fail()
    page.goto("/dead")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label(f"Discard {job_id}").click()
    expect(page.get_by_role("status").filter(has_text="off the list")).to_be_visible()
    expect(page.get_by_label(f"Discard {job_id}")).to_have_count(0)
    assert site.job(job_id)["status"] == "FAILED"


def test_all_dead_letters_of_a_filter_are_sent_back_after_a_question(page: Page, site: Site) -> None:
    ids = [site.fail(tenant="acme") for _ in range(3)]
    other = site.fail(tenant="globex")
    page.goto("/dead?tenant=acme&task=demo.fragile")
    page.get_by_role("link", name="Retry all").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Retry")
    site.mend()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("status").filter(has_text="Due again")).to_be_visible()
    for job_id in ids:
        site.wait_for_state(job_id, "COMPLETED")
    assert site.job(other)["status"] == "FAILED"


def test_ticked_jobs_are_cancelled_and_the_others_are_not(page: Page, site: Site) -> None:
    tenant = f"ticking-{page.viewport_size}"
    ids = [site.ask("demo.quick", run_in="1h", tenant=tenant) for _ in range(3)]
    page.goto(f"/jobs?tenant={quote(tenant)}")
    for job_id in ids[:2]:
        page.locator(f'input[value="{job_id}"]').check()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status").filter(has_text="Told to stop: 2.")).to_be_visible()
    assert [site.job(job_id)["status"] for job_id in ids] == ["CANCELLED", "CANCELLED", "SCHEDULED"]
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("button", name="Cancel 1").click()
    expect(page.get_by_role("status").filter(has_text="Told to stop: 1.")).to_be_visible()
    assert site.job(ids[2])["status"] == "CANCELLED"


def test_jobs_are_found_by_text(page: Page, site: Site) -> None:
    site.fail()
    page.goto("/jobs")
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("SAID 503")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?*")
    expect(page.locator(".rows tbody tr").first).to_contain_text("said 503")
    expect(page.locator(".rows").get_by_text("nightly-backup")).to_have_count(0)
