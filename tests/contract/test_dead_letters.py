"""Dead letters are one list: jobs that failed for good, and messages that are none."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from cronq.errors import JobRefused, UnknownDeadLetter
from cronq.job import Outcome, State
from cronq.store import dead as store
from cronq.store.attempts import age_s, bury
from cronq.store.database import Database
from cronq.store.dead import DeadFilter
from cronq.store.dead_copies import open_messages
from cronq.store.dead_messages import (
    KEPT_BYTES,
    DeadMessage,
    body_of,
    drop_oldest_messages,
    get_message,
    may_be_sent_back,
    record_message,
    remove_message,
)

from .rows import Rows

ALL = DeadFilter()


def failed(rows: Rows, *, kind: str = "network", **facts: Any) -> str:
    """Add a job that failed for good."""
    job_id = rows.job(**facts)
    rows.claim(job_id)
    rows.settle(
        job_id, outcome=Outcome.FAILED, state=State.FAILED, kind=kind, error="ValueError: no", dead=True
    )
    return job_id


def message(database: Database, **facts: Any) -> str:
    values: dict[str, Any] = {
        "kind": "undecodable",
        "error": "not JSON",
        "body": b"{",
        "task": "t",
        "routing_key": "celery",
    }
    return record_message(database, DeadMessage(**{**values, **facts}))


def ids(database: Database, wanted: DeadFilter = ALL, **how: Any) -> list[str]:
    return [letter.id for letter in store.list_dead(database, wanted, limit=100, **how)]


def test_jobs_and_messages_stand_in_one_list_the_newest_first(database: Database, rows: Rows) -> None:
    one, two = failed(rows), message(database)
    three = failed(rows, schedule="nightly")
    rows.set(one, dead_at=database.now_sql("-3"))
    rows.set(three, dead_at=database.now_sql("3"))
    assert ids(database) == [three, two, one]
    newest, between, _oldest = store.list_dead(database, ALL, limit=100)
    assert (newest.what, newest.schedule, newest.kind, newest.attempts) == ("job", "nightly", "network", 1)
    assert (between.what, between.queue, between.kind, between.error) == (
        "message",
        "celery",
        "undecodable",
        "not JSON",
    )
    assert store.count_dead_letters(database, ALL) == 3


def test_the_list_is_read_page_by_page(database: Database, rows: Rows) -> None:
    expected = [failed(rows), message(database), failed(rows), message(database), failed(rows)][::-1]
    seen: list[str] = []
    before: tuple[datetime, str] | None = None
    while page := store.list_dead(database, ALL, limit=2, before=before):
        seen += [letter.id for letter in page]
        before = (page[-1].dead_at, page[-1].id)
    assert sorted(seen) == sorted(expected)
    assert len(seen) == 5


def test_each_filter_finds_what_it_names_and_nothing_else(database: Database, rows: Rows) -> None:
    by_task = failed(rows, task="shop.charge")
    by_schedule = failed(rows, schedule="nightly")
    by_tenant = failed(rows, tenant="acme")
    by_kind = failed(rows, kind="permanent")
    old = failed(rows)
    rows.set(old, dead_at=database.now_sql("-7200"))
    strange = message(database, task="shop.unknown", kind="unknown_task")
    hour_ago = rows.now() - timedelta(hours=1)
    assert ids(database, DeadFilter(task="shop.charge")) == [by_task]
    assert ids(database, DeadFilter(schedule="nightly")) == [by_schedule]
    assert ids(database, DeadFilter(tenant="acme")) == [by_tenant]
    assert ids(database, DeadFilter(kind="permanent")) == [by_kind]
    assert ids(database, DeadFilter(kind="unknown_task")) == [strange]
    assert ids(database, DeadFilter(until=hour_ago)) == [old]
    assert old not in ids(database, DeadFilter(since=hour_ago))
    assert set(ids(database, DeadFilter(ids=[by_kind, strange]))) == {strange, by_kind}
    assert ids(database, DeadFilter(task="shop.charge", tenant="acme")) == []


def test_a_job_that_goes_on_is_no_dead_letter(database: Database, rows: Rows) -> None:
    job_id = rows.job()
    assert ids(database) == []
    with pytest.raises(UnknownDeadLetter, match=job_id):
        store.retry_dead_letter(database, job_id)
    with pytest.raises(UnknownDeadLetter, match=job_id):
        store.discard_dead_letter(database, job_id)
    assert rows.state(job_id) is State.SCHEDULED


def test_what_is_sent_back_keeps_its_id_and_its_history(database: Database, rows: Rows) -> None:
    job_id, other = failed(rows, kind="network"), failed(rows, kind="permanent")
    assert store.retry_dead_letters(database, DeadFilter(kind="network")) == [job_id]
    assert (rows.state(job_id), rows.state(other)) == (State.SCHEDULED, State.FAILED)
    assert rows.attempts(job_id) == [(1, "FAILED", "network")]
    assert ids(database) == [other]
    claim = rows.claim(job_id, "token-2")
    assert claim is not None
    assert (claim.attempt, claim.earlier) == (2, 1)


def test_a_discarded_job_stays_in_the_history_as_it_failed(database: Database, rows: Rows) -> None:
    job_id = failed(rows)
    assert store.discard_dead_letters(database, DeadFilter(ids=[job_id])) == [job_id]
    assert ids(database) == []
    assert rows.state(job_id) is State.FAILED
    assert rows.attempts(job_id) == [(1, "FAILED", "network")]


def test_more_letters_than_fit_one_transaction_all_go(
    database: Database, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BATCH", 2)
    jobs = [failed(rows) for _ in range(5)]
    messages = [message(database) for _ in range(4)]
    assert sorted(store.retry_dead_letters(database, DeadFilter(kind="network"))) == sorted(jobs)
    assert sorted(store.discard_dead_letters(database, ALL)) == sorted(messages)
    assert ids(database) == []


def test_a_message_waits_for_the_leader_and_is_off_the_list_meanwhile(database: Database) -> None:
    again, gone = message(database), message(database)
    store.retry_dead_letter(database, again)
    store.discard_dead_letter(database, gone)
    assert ids(database) == []
    assert get_message(database, again) is None
    assert {row["id"]: row["wish"] for row in open_messages(database, limit=9)} == {
        again: "retry",
        gone: "discard",
    }
    remove_message(database, again)
    remove_message(database, gone)
    assert open_messages(database, limit=9) == []


@pytest.mark.parametrize(
    "facts", [{"routing_key": ""}, {"body": b"x" * (KEPT_BYTES + 1)}], ids=["nowhere", "cut"]
)
def test_a_message_that_is_not_whole_or_came_from_nowhere_cannot_be_sent_back(
    database: Database, facts: dict[str, Any]
) -> None:
    dead_id = message(database, **facts)
    row = get_message(database, dead_id)
    assert row is not None
    assert not may_be_sent_back(row)
    with pytest.raises(JobRefused, match=dead_id):
        store.retry_dead_letter(database, dead_id)
    assert store.retry_dead_letters(database, ALL) == []
    assert ids(database) == [dead_id]


def test_a_message_is_kept_as_it_came_however_awkward_it_is(database: Database) -> None:
    body = bytes(range(256))
    dead_id = message(
        database,
        body=body,
        task="t" * 300,
        error="nul \0 and half a pair \ud800",
        headers={"id": b"\xff", "nul": "\0", "deep": {"when": object()}},
    )
    row = get_message(database, dead_id)
    assert row is not None
    assert body_of(row) == body
    assert row["task"] == "t" * 255
    assert row["headers"]["deep"]


def test_only_the_newest_messages_are_kept(database: Database) -> None:
    for _ in range(3):
        message(database)
    kept = ids(database)[:2]
    assert drop_oldest_messages(database, keep=2) == 1
    assert ids(database) == kept
    assert drop_oldest_messages(database, keep=2) == 0


def test_a_job_that_nobody_can_run_may_be_buried_sent_back_and_buried_again(
    database: Database, rows: Rows
) -> None:
    job_id = rows.job()
    for _ in range(2):
        assert bury(database, job_id, kind="unknown_task", error="no such task \0")
        assert not bury(database, job_id, kind="unknown_task", error="it is buried already")
        assert ids(database, DeadFilter(kind="unknown_task")) == [job_id]
        store.retry_dead_letter(database, job_id)
    assert len(rows.attempts(job_id)) == 2


def test_success_forgets_the_sort_of_the_last_failure(database: Database, rows: Rows) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.settle(
        job_id, outcome=Outcome.FAILED, state=State.RETRYING, kind="network", error="gone", retry_in_s=0.0
    )
    assert rows.row(job_id)["kind"] == "network"
    rows.claim(job_id, "token-2")
    rows.settle(job_id, "token-2", number=2)
    assert (rows.row(job_id)["kind"], rows.row(job_id)["error"]) == (None, None)


def test_a_jobs_age_counts_from_its_first_attempt_since_it_was_last_sent_back(
    database: Database, rows: Rows
) -> None:
    job_id = rows.job()
    rows.claim(job_id)
    rows.set(job_id, started_at=database.now_sql("-100"))
    assert 100 <= age_s(database, job_id, earlier=0) < 110
    rows.settle(job_id, outcome=Outcome.FAILED, state=State.RETRYING, retry_in_s=0.0)
    rows.claim(job_id, "token-2")
    assert 100 <= age_s(database, job_id, earlier=0) < 110
    assert 0 <= age_s(database, job_id, earlier=1) < 10
    assert age_s(database, "nobody", earlier=0) == 0
