"""What became of each fire time?"""

from datetime import timedelta

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State, Trigger, scheduled_job_id
from cronq.schedule import Reason
from cronq.store.agenda import insert_jobs
from cronq.store.fires import latest_fires
from cronq.store.scheduled import job_of
from cronq.store.schedules import get_schedule
from cronq.timing import Every
from cronq.views import iso

from .steps import PAGE, declare, end, plan, turn_back


def test_every_fire_time_has_an_answer(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts, "hourly")
    hour = timedelta(hours=1)
    now = parts.database.clock()
    newest = Every(hour).previous(now)
    assert newest is not None
    turn_back(parts, schedule_id, born=newest - 6 * hour, next_fire_at=newest)
    ran, skipped, folded = newest - hour, newest - 2 * hour, newest - 3 * hour
    plan(parts, schedule_id, "hourly", ran)
    end(parts, scheduled_job_id(schedule_id, ran))
    plan(parts, schedule_id, "hourly", skipped, state=State.SKIPPED, reason=Reason.OVERLAP)
    plan(parts, schedule_id, "hourly", folded, state=State.SKIPPED, reason=Reason.MISSED_WINDOW)
    asked = {
        "schedule": "hourly",
        "from": (folded - hour).isoformat(),
        "to": (newest + 2 * hour).isoformat(),
    }
    found = client.get("/api/fires", params=asked).json()
    assert [(f["disposition"], f["reason"]) for f in found["items"]] == [
        ("skipped", "missed_window"),  # one of the stretch whose record stands at its end
        ("skipped", "missed_window"),
        ("skipped", "overlap"),
        ("job", None),
        ("undecided", None),
        ("to_come", None),
    ]
    assert all(f["detail"] for f in found["items"])
    first_two = client.get("/api/fires", params=asked | {"limit": 2}).json()
    rest = client.get("/api/fires", params=asked | {"from": first_two["next_from"]}).json()
    assert first_two["items"] + rest["items"] == found["items"]
    page = client.get("/schedules/hourly", headers=PAGE).text
    assert "the previous job was still going on" in page


def test_what_was_made_up_for_hides_no_other_fire_time(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts, "hourly")
    hour = timedelta(hours=1)
    newest = Every(hour).previous(parts.database.clock())
    assert newest is not None
    turn_back(parts, schedule_id, born=newest - 40 * hour, next_fire_at=newest + hour)
    stored = get_schedule(parts.database, "hourly")
    times = [newest - number * hour for number in range(30)]
    again = [job_of(stored, at, due_at=at, trigger=Trigger.BACKFILL, item="backfill:b") for at in times]
    own = [job_of(stored, at, due_at=at, trigger=Trigger.SCHEDULE) for at in times]
    with parts.database.begin() as connection:
        insert_jobs(parts.database, connection, own + again, newest)
    latest = latest_fires(parts.database, stored, 20)
    assert [each.fire_time for each in latest] == times[:20]
    assert all(each.job is not None and each.backfill is not None for each in latest)
    seen, asked = [], {"schedule": "hourly", "from": times[4].isoformat(), "to": (newest + hour).isoformat()}
    for _page in times[:5]:
        answer = client.get("/api/fires", params=asked | {"limit": 1}).json()
        seen += answer["items"]
        asked["from"] = answer["next_from"] or asked["to"]
    assert [each["fire_time"] for each in seen] == [iso(at) for at in reversed(times[:5])]
