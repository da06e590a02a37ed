"""The page's forms: what they ask for is checked as the API checks it, and said in words."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.store.backfills import list_backfills
from cronq.store.tokens import Role, create_token
from cronq.timing import Every
from cronq.web.render import COOKIE

from .steps import PAGE, declare


def past_day(parts: Cronq) -> dict[str, str]:
    end = Every(timedelta(hours=1)).previous(parts.database.clock())
    assert end is not None
    return {
        "start": f"{end - timedelta(hours=24):%Y-%m-%dT%H:%M}",
        "end": f"{end:%Y-%m-%dT%H:%M}",
        "concurrency": "2",
        "order": "newest",
    }


def test_a_backfill_is_looked_at_begun_and_steered_without_a_script(client: TestClient, parts: Cronq) -> None:
    declare(parts, "with/slash & more")
    asked = {"schedule": "with/slash & more", **past_day(parts)}
    empty = client.get("/backfill", params={"schedule": asked["schedule"]}, headers=PAGE)
    assert empty.status_code == 200
    assert "would become" not in empty.text
    look = client.get("/backfill", params=asked, headers=PAGE).text
    assert "24 of 24 fire times would become jobs" in look
    assert list_backfills(parts.database, limit=1) == []
    begun = client.post("/backfill", data=asked)
    assert begun.status_code == 303
    page = client.get(begun.headers["location"].partition("#")[0], headers=PAGE).text
    assert "The backfill has begun." in page
    made = list_backfills(parts.database, limit=5)
    assert [(row["concurrency"], row["newest_first"], row["state"]) for row in made] == [(2, True, "RUNNING")]
    for what, state in [("pause", "PAUSED"), ("resume", "RUNNING"), ("cancel", "CANCELLED")]:
        assert f"/act/{what}_backfill" in client.get("/schedules/with%2Fslash%20%26%20more").text
        assert client.post(f"/act/{what}_backfill", data={"id": made[0]["id"]}).status_code == 303
        assert client.get(f"/api/backfills/{made[0]['id']}").json()["state"] == state
    assert "/act/pause_backfill" not in client.get("/schedules/with%2Fslash%20%26%20more").text


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"start": "yesterday"}, "this is no time"),
        ({"start": "0001-01-01T00:00"}, "between 1970 and 2200"),
        ({"end": "2190-01-01T00:00"}, "lies ahead"),
        ({"start": "2026-01-02T00:00", "end": "2026-01-01T00:00"}, "the range is empty"),
        ({"concurrency": "none"}, "valid integer"),
        ({"concurrency": "0"}, "greater than or equal to 1"),
    ],
)
def test_a_range_that_cannot_be_made_up_for_is_refused_beside_the_form(
    client: TestClient, parts: Cronq, odd: dict[str, str], said: str
) -> None:
    declare(parts, "hourly")
    asked = {"schedule": "hourly", **past_day(parts), **odd}
    for answer in (client.get("/backfill", params=asked), client.post("/backfill", data=asked)):
        assert answer.status_code == 422
        assert said in answer.text
        assert all(f'value="{typed}"' in answer.text for typed in odd.values())
    assert list_backfills(parts.database, limit=1) == []


def test_a_viewer_is_offered_no_form_and_may_send_none(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    client.cookies.set(COOKIE, create_token(parts.database, "eve", Role.VIEWER))
    assert "/backfill" not in client.get("/schedules/hourly", headers=PAGE).text
    assert client.get("/backfill?schedule=hourly", headers=PAGE).status_code == 403
    asked = {"schedule": "hourly", **past_day(parts)}
    assert client.post("/backfill", data=asked).status_code == 403
    assert list_backfills(parts.database, limit=1) == []


def test_no_other_site_can_send_a_form(client: TestClient, parts: Cronq) -> None:
    declare(parts, "hourly")
    asked = {"schedule": "hourly", **past_day(parts)}
    answer = client.post("/backfill", data=asked, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert list_backfills(parts.database, limit=1) == []
