"""A key that one attempt of a job has done is not done by the next; whoever lost the job does nothing."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from cronq.errors import LeaseLost
from cronq.job import Outcome, State
from cronq.progress.reporter import Report
from cronq.store.attempts import settle_in
from cronq.store.database import Database
from cronq.store.once import recall, remember
from cronq.worker.record import AttemptRecord

from .rows import Rows

RETRY: dict[str, Any] = {"outcome": Outcome.FAILED, "state": State.RETRYING}


class Books:
    """The store, without the patience of a worker's desk."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def __getattr__(self, name: str) -> Any:
        function = {"recall": recall, "remember": remember, "settle_in": settle_in}[name]
        return lambda *args: function(self.database, *args)


@pytest.fixture
def begin(database: Database, rows: Rows) -> Callable[[str], AttemptRecord]:
    """Claim the job, and open the record of that attempt."""

    def claim(job_id: str) -> AttemptRecord:
        token = str(uuid.uuid4())
        assert rows.claim(job_id, token) is not None
        report = Report(job_id, 1, interval_s=1, send=lambda _report: None)
        record = AttemptRecord(Books(database), report, token, lambda _value: pytest.fail("not settled here"))
        record.token = token  # type: ignore[attr-defined]
        return record

    return claim


def retried(rows: Rows, job_id: str, record: Any) -> None:
    assert rows.settle(job_id, record.token, **RETRY)


def test_what_an_attempt_did_is_not_done_by_the_next_which_gets_its_value(rows: Rows, begin: Any) -> None:
    job_id = rows.job()
    first = begin(job_id)
    assert first.once("charge", lambda: {"receipt": 7}) == {"receipt": 7}
    retried(rows, job_id, first)
    second = begin(job_id)
    assert second.once("charge", lambda: pytest.fail("done twice")) == {"receipt": 7}
    assert second.once("mail", lambda: "sent") == "sent"


def test_what_failed_is_done_again_by_the_same_attempt_and_the_next(rows: Rows, begin: Any) -> None:
    job_id = rows.job()
    first = begin(job_id)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            first.once("charge", lambda: 1 / 0)
    retried(rows, job_id, first)
    assert begin(job_id).once("charge", lambda: 1) == 1


@pytest.mark.parametrize("value", [None, False, 0, [], "\0 and \ud800"])
def test_any_value_counts_as_done(rows: Rows, begin: Any, value: Any) -> None:
    record = begin(rows.job())
    assert record.once("k", lambda: value) == value
    assert record.once("k", lambda: pytest.fail("done twice")) == value


def test_a_value_that_cannot_be_kept_becomes_none_the_first_time_already(rows: Rows, begin: Any) -> None:
    record = begin(rows.job())
    assert record.once("k", object) is None
    assert record.once("k", lambda: pytest.fail("done twice")) is None


def test_a_worker_that_asks_again_because_the_answer_got_lost_still_has_its_job(
    database: Database, rows: Rows
) -> None:
    job_id, token = rows.job(), str(uuid.uuid4())
    assert rows.claim(job_id, token) is not None
    assert remember(database, job_id, token, "charge", 7)
    assert remember(database, job_id, token, "charge", 7)
    assert recall(database, job_id, token, "charge").value == 7
    assert rows.settle(job_id, token, **RETRY)
    assert not remember(database, job_id, token, "charge", 7)


def test_two_jobs_do_not_share_a_key(rows: Rows, begin: Any) -> None:
    assert begin(rows.job()).once("k", lambda: 1) == 1
    assert begin(rows.job()).once("k", lambda: 2) == 2


def test_a_zombie_loses_its_turn_before_it_does_anything(rows: Rows, begin: Any) -> None:
    job_id = rows.job()
    zombie = begin(job_id)
    rows.expire(job_id)
    assert rows.settle(job_id, zombie.token, outcome=Outcome.LOST, state=State.RETRYING, only_expired=True)
    heir = begin(job_id)
    with pytest.raises(LeaseLost):
        zombie.once("charge", lambda: pytest.fail("done by a worker without the lease"))
    assert heir.once("charge", lambda: "by the heir") == "by the heir"


def test_a_worker_that_loses_the_lease_while_it_does_it_records_nothing(rows: Rows, begin: Any) -> None:
    job_id = rows.job()
    zombie = begin(job_id)

    def too_late() -> str:
        retried(rows, job_id, zombie)
        return "late"

    with pytest.raises(LeaseLost):
        zombie.once("charge", too_late)
    assert begin(job_id).once("charge", lambda: "again") == "again"


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_that_cannot_be_kept_is_refused_before_anything_is_done(
    rows: Rows, begin: Any, key: str
) -> None:
    with pytest.raises(ValueError, match="characters"):
        begin(rows.job()).once(key, lambda: pytest.fail("done"))
