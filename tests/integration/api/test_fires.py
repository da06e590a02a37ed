"""What became of each fire time?"""

from datetime import timedelta

from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.job import State, scheduled_job_id
from cronq.schedule import Reason
from cronq.timing import Every

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
