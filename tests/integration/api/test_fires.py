"""What became of each fire time?"""

from datetime import datetime, timedelta

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.cli.main import cronq
from cronq.coordination.lock import LeaderLock
from cronq.job import Outcome, State, Trigger, scheduled_job_id
from cronq.schedule import Reason
from cronq.store.agenda import insert_jobs
from cronq.store.fires import latest_fires
from cronq.store.scheduled import job_of
from cronq.store.schedules import get_schedule
from cronq.store.terms import begin_term
from cronq.timing import Every
from cronq.views import iso
from tests.contract.rows import Rows

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


class Asked:
    """A schedule each hour with one planned fire time in the past; asks the shell and the page about it."""

    def __init__(self, client: TestClient, parts: Cronq) -> None:
        self.client, self.parts, self.rows = client, parts, Rows(parts.database)
        self.schedule_id = declare(parts, "hourly")
        newest = Every(timedelta(hours=1)).previous(parts.database.clock())
        assert newest is not None
        self.fire = newest - timedelta(hours=1)
        turn_back(parts, self.schedule_id, born=self.fire - timedelta(hours=6), next_fire_at=self.fire)

    def plan(self) -> str:
        plan(self.parts, self.schedule_id, "hourly", self.fire)
        turn_back(self.parts, self.schedule_id, next_fire_at=self.fire + timedelta(hours=1))
        return scheduled_job_id(self.schedule_id, self.fire)

    def shell(self, at: datetime, *, code: int = 0) -> str:
        answer = CliRunner().invoke(cronq, ["why", "hourly", at.isoformat()])
        assert answer.exit_code == code, answer.output
        return " ".join(answer.output.split())

    def page(self) -> str:
        asked = {"at": f"{self.fire:%Y-%m-%dT%H:%M}"}
        answer = self.client.get("/schedules/hourly", params=asked, headers=PAGE).text
        return answer.partition('class="why"')[2].partition("</section>")[0]

    def says(self, words: str) -> None:
        assert words in self.shell(self.fire)
        assert words in self.page()


@pytest.fixture
def asked(client: TestClient, parts: Cronq, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr("cronq.cli.schedules.parts_of", lambda _context: parts)
    return Asked(client, parts)


def test_what_is_overdue_says_so_and_whether_somebody_leads(asked: Asked, parts: Cronq) -> None:
    asked.says("the next leader decides about it, and overdue by ")
    asked.says("nobody leads; start a beat")
    asked.plan()
    asked.says("it is planned, and overdue by ")
    asked.says("nobody leads; start a beat")
    lock = LeaderLock(parts.redis, prefix=parts.settings.key_prefix, shard=0, holder="beat:1", lock_s=60)
    lock.take()
    term = begin_term(parts.database, shard=0, holder="beat:1", host="h", pid=1)
    asked.says(f"beat:1 leads, in term {term.term}")


def test_what_waits_for_a_worker_that_nobody_hears_of_says_so(asked: Asked, parts: Cronq) -> None:
    job_id = asked.plan()
    asked.rows.set(job_id, state="'PENDING'", queue="'gpu'", published_at=parts.database.now_sql("0"))
    parts.workers.tell("w@host", host="host", pid=7, queues=["cpu"], slots=4)
    asked.says("no worker has claimed it yet; no live worker consumes the queue gpu")
    parts.workers.tell("w@host", host="host", pid=7, queues=["cpu", "gpu"], slots=4)
    assert "no live worker" not in asked.page()
    asked.rows.set(job_id, state="'SCHEDULED'", published_at="NULL", waits_for="'task:demo.work'")
    asked.says("it is due, and waits for room under task:demo.work")


def test_what_completed_after_its_worker_was_lost_tells_of_both_attempts(asked: Asked) -> None:
    job_id = asked.plan()
    asked.rows.claim(job_id, worker="w1@host")
    asked.rows.expire(job_id)
    lost = {"outcome": Outcome.LOST, "state": State.RETRYING, "only_expired": True, "worker": "w1@host"}
    assert asked.rows.settle(job_id, **lost)
    asked.rows.claim(job_id, "token-2", worker="w2@host")
    assert asked.rows.settle(job_id, "token-2", number=2)
    asked.says("it ran and completed at attempt 2; attempt 1: worker w1@host went silent")


def test_a_second_that_is_named_is_not_answered_with_the_next_fire_time(asked: Asked) -> None:
    asked.plan()
    assert "it is planned" in asked.shell(asked.fire)
    said = asked.shell(asked.fire - timedelta(seconds=30), code=1)
    assert "not due at" in said
    assert f"after it {asked.fire:%Y-%m-%d %H:%M:%SZ}" in said
