"""The dead-letter queue on each broker says what SQL says, and losing it loses nothing."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu
import pytest
from celery import Celery

from cronq.delivery.dead_letter_queue import FACTS, DeadLetterQueue
from cronq.store.attempts import bury
from cronq.store.database import Database
from cronq.store.dead import DeadFilter, DeadLetter, discard_dead_letter, list_dead, retry_dead_letter
from cronq.store.dead_messages import DeadMessage, record_message
from cronq.store.schema import upgrade
from cronq.upkeep.dead_letter_keeper import LOOKS, DeadLetterKeeper

from .rows import Rows


class Desk:
    """A keeper on one broker, and what it would find there."""

    def __init__(self, broker_url: str, database: Database) -> None:
        self.url, self.database, self.rows = broker_url, database, Rows(database)
        self.app = Celery(f"dead-{uuid.uuid4().hex[:6]}", broker=broker_url, set_as_current=False)
        self.queue = DeadLetterQueue(self.app, "cronq.dead")
        self.malformed: list[dict[str, str]] = []
        self.keeper = DeadLetterKeeper(
            database,
            self.queue,
            leads=lambda: True,
            read_malformed=lambda: self.malformed[0] if self.malformed else None,
            drop_malformed=lambda: self.malformed.pop(0) and None,
        )

    def dead_job(self, **facts: Any) -> str:
        job_id = self.rows.job(**facts)
        bury(self.database, job_id, kind="network", error="Traceback\nConnectionError: gone")
        return job_id

    def dead_message(self, **facts: Any) -> str:
        values = {"kind": "malformed", "error": "odd", "body": b"\x00\xff", "routing_key": "celery", **facts}
        return record_message(self.database, DeadMessage(**values))

    def letters(self) -> list[DeadLetter]:
        return list_dead(self.database, DeadFilter(), limit=100)

    def take(self, queue: str) -> list[Any]:
        """Consume all that is in a queue, oldest first."""
        found = []
        with kombu.Connection(self.url) as connection, connection.channel() as channel:
            bound = kombu.Queue(queue, channel=channel)
            while (message := bound.get(no_ack=False)) is not None:
                message.ack()
                found.append(message)
        return found

    def copies(self) -> list[str]:
        return [message.headers[FACTS]["id"] for message in self.take("cronq.dead")]


@pytest.fixture
def desk(broker_url: str, tmp_path: Path) -> Iterator[Desk]:
    database = Database(f"sqlite:///{tmp_path / 'cronq.db'}")
    upgrade(database)
    desk = Desk(broker_url, database)
    yield desk
    desk.queue.close()
    desk.app.close()
    database.dispose()


def test_each_dead_letter_is_copied_once_with_its_body_and_headers(desk: Desk) -> None:
    job_id = desk.dead_job(task="shop.charge", schedule="nightly", tenant="acme", priority=4)
    message_id = desk.dead_message(headers={"lang": "cobol"}, content_type="application/x-cobol")
    desk.keeper.look()
    desk.keeper.look()
    job, message = sorted(desk.take("cronq.dead"), key=lambda each: each.headers[FACTS]["kind"], reverse=True)
    assert json.loads(job.body)[:2] == [[1], {"k": "v"}]
    assert (job.headers["id"], job.headers["task"], job.headers["cronq"]["tenant"]) == (
        job_id,
        "shop.charge",
        "acme",
    )
    assert job.headers[FACTS]["error"] == "ConnectionError: gone"
    assert message.headers[FACTS]["id"] == message_id
    assert (message.body, message.headers["lang"]) == (b"\x00\xff", "cobol")
    assert all(letter.copied_at is not None for letter in desk.letters())


def test_what_is_sent_back_or_discarded_leaves_the_queue_and_the_others_stay_in_order(desk: Desk) -> None:
    jobs = []
    for _ in range(4):
        jobs.append(desk.dead_job())
        desk.keeper.look()
    gone = desk.dead_message()
    desk.keeper.look()
    retry_dead_letter(desk.database, jobs[1])
    discard_dead_letter(desk.database, jobs[2])
    discard_dead_letter(desk.database, gone)
    desk.keeper.look()
    assert desk.copies() == [jobs[0], jobs[3]]


def test_a_message_that_is_sent_back_arrives_where_it_came_from_as_it_was(desk: Desk) -> None:
    with kombu.Connection(desk.url) as connection:
        kombu.Queue("somewhere", channel=connection.default_channel).declare()
    dead_id = desk.dead_message(
        routing_key="somewhere", body=b"[[], {}, {}]", headers={"id": "m1"}, content_type="application/json"
    )
    desk.keeper.look()
    retry_dead_letter(desk.database, dead_id)
    desk.keeper.look()
    (message,) = desk.take("somewhere")
    assert (message.body, message.headers, message.content_type) in (
        (b"[[], {}, {}]", {"id": "m1"}, "application/json"),
        ("[[], {}, {}]", {"id": "m1"}, "application/json"),
    )
    assert desk.copies() == []
    assert desk.letters() == []


def test_a_job_that_dies_again_before_its_copy_was_taken_away_has_one_copy(desk: Desk) -> None:
    job_id = desk.dead_job()
    desk.keeper.look()
    retry_dead_letter(desk.database, job_id)
    bury(desk.database, job_id, kind="network", error="again")
    desk.keeper.look()
    assert desk.copies() == [job_id]


def test_a_queue_that_somebody_emptied_keeps_nobody_busy_for_ever(desk: Desk) -> None:
    job_id = desk.dead_job()
    desk.keeper.look()
    desk.copies()
    discard_dead_letter(desk.database, job_id)
    for _ in range(LOOKS):
        assert desk.rows.row(job_id)["copied_at"] is not None
        desk.keeper.look()
    assert desk.rows.row(job_id)["copied_at"] is None


def test_what_workers_put_aside_becomes_a_dead_letter(desk: Desk) -> None:
    desk.malformed = [
        {"error": "ValueError('no JSON')", "text": "garbage"},
        {"error": "odd", "text": "\ud800"},
    ]
    desk.keeper.look()
    assert desk.malformed == []
    assert {(letter.kind, letter.error) for letter in desk.letters()} == {
        ("malformed", "ValueError('no JSON')"),
        ("malformed", "odd"),
    }
    assert len(desk.copies()) == 2


def test_one_letter_that_cannot_be_written_holds_up_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = desk.dead_job(task="bad"), desk.dead_job(task="good")
    put = DeadLetterQueue.put

    def refuse(queue: DeadLetterQueue, letter: Any) -> None:
        if letter.id == bad:
            raise OverflowError
        put(queue, letter)

    monkeypatch.setattr(DeadLetterQueue, "put", refuse)
    desk.keeper.look()
    assert desk.copies() == [good]
    assert {letter.id for letter in desk.letters()} == {bad, good}


@pytest.mark.parametrize("broker_url", ["rabbitmq"], indirect=True)
def test_a_message_whose_queue_is_gone_stays_a_dead_letter_and_says_why(desk: Desk) -> None:
    dead_id = desk.dead_message(routing_key="gone")
    desk.keeper.look()
    retry_dead_letter(desk.database, dead_id)
    desk.keeper.look()
    (letter,) = desk.letters()
    assert letter.id == dead_id
    assert "no queue takes messages for exchange '', routing key 'gone'" in (letter.error or "")
    assert desk.copies() == [dead_id]
