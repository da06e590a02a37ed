"""Dead letters on real brokers: what nobody can run is kept, shown and sent back, and ends no worker."""

from typing import Any

import kombu
import pytest
import redis

from cronq.delivery.dead_letter_queue import FACTS
from cronq.store.dead import DeadFilter, DeadLetter, discard_dead_letter, list_dead, retry_dead_letter
from tests.support.processes import wait_for
from tests.support.servers import PostgreSQLServer

from .cluster import Cluster

ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)
QUEUE = "cronq.dead"


@pytest.fixture(autouse=True)
def failing(cluster: Cluster) -> None:
    cluster.env["FAULT_SCHEDULES"] = "0"
    cluster.app = "tests.support.failing_app"


def letters(cluster: Cluster, **wanted: Any) -> list[DeadLetter]:
    return list_dead(cluster.database, DeadFilter(**wanted), limit=100)


def one_letter(cluster: Cluster, **wanted: Any) -> DeadLetter:
    (letter,) = wait_for(lambda: letters(cluster, **wanted), 20, f"a dead letter with {wanted}")
    return letter


def publish(cluster: Cluster, body: Any, headers: dict[str, Any], **more: Any) -> None:
    facts = {"content_type": "application/json", "content_encoding": "utf-8", "routing_key": "celery", **more}
    with kombu.Connection(cluster.broker_url) as connection:
        kombu.Producer(connection.default_channel).publish(body, headers=headers, **facts)


def copies(cluster: Cluster) -> dict[str, Any]:
    """Look at the dead-letter queue as anybody may, and leave it as it is: id → message."""
    found: dict[str, Any] = {}
    with kombu.Connection(cluster.broker_url) as connection, connection.channel() as channel:
        queue = kombu.Queue(QUEUE, channel=channel)
        try:
            while (message := queue.get(no_ack=False)) is not None:
                found[message.headers[FACTS]["id"]] = message
                message.decode()
        except connection.channel_errors:
            pass  # there is no such queue yet
        for message in reversed(found.values()):
            message.requeue()
    return found


def wait_for_copies(cluster: Cluster, wanted: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def there() -> bool:
        found.clear()
        found.update(copies(cluster))
        return set(found) == wanted

    wait_for(there, 20, f"the dead-letter queue to have {wanted or 'nothing'}")
    return found


@ON_BOTH
def test_the_queue_has_a_dead_jobs_message_until_the_job_is_sent_back_or_discarded(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w")
    one = cluster.demand("failing.takes_one", args=[1, 2], kwargs={"k": "ü"}, tenant="acme")
    two = cluster.demand("failing.always", priority=3)
    found = wait_for_copies(cluster, {one, two})
    args, kwargs, _embed = found[one].payload
    assert (args, kwargs) == ([1, 2], {"k": "ü"})
    headers = found[one].headers
    assert (headers["id"], headers["task"]) == (one, "failing.takes_one")
    assert headers["cronq"]["tenant"] == "acme"
    assert headers[FACTS]["kind"] == "wrong_arguments"
    assert found[two].headers[FACTS]["error"].startswith("ValueError: bad rows")
    discard_dead_letter(cluster.database, one)
    wait_for_copies(cluster, {two})
    retry_dead_letter(cluster.database, two)
    cluster.wait_for_start(two, attempt=2)
    cluster.wait_for_state(two, "FAILED")
    wait_for_copies(cluster, {two})
    assert [letter.id for letter in letters(cluster)] == [two]
    assert len(cluster.attempts(two)) == 2


JSON, WORK = "application/json", {"id": "x", "task": "faults.work"}
BAD: dict[str, tuple[bytes, dict[str, Any], str, str]] = {
    "not JSON": (b"{", WORK, JSON, "undecodable"),
    "pickle": (b"\x80\x04K\x01.", WORK, "application/x-python-serialize", "undecodable"),
    "a type nobody knows": (b"?", WORK, "application/x-cobol", "undecodable"),
    "no headers": (b"[[], {}, {}]", {}, JSON, "malformed"),
    "a bare number": (b"7", WORK, JSON, "malformed"),
    "too short": (b"[[], {}]", WORK, JSON, "malformed"),
    "odd arguments": (b"[{}, {}, {}]", WORK, JSON, "malformed"),
    "odd keywords": (b"[[], [], {}]", WORK, JSON, "malformed"),
    "no id": (b"[[], {}, {}]", {"task": "faults.work"}, JSON, "malformed"),
    "an id that is a number": (b"[[], {}, {}]", {**WORK, "id": 7}, JSON, "malformed"),
    "a task that is a list": (b"[[], {}, {}]", {**WORK, "task": ["a"]}, JSON, "malformed"),
    "an odd time limit": (b"[[], {}, {}]", {**WORK, "timelimit": "soon"}, JSON, "malformed"),
    "the first protocol, oddly": (b'{"task": [], "id": "x"}', {}, JSON, "malformed"),
    "an unknown task": (b"[[], {}, {}]", {**WORK, "task": "nobody.knows"}, JSON, "unknown_task"),
}


@ON_BOTH
def test_messages_that_nobody_can_run_are_dead_letters_and_the_next_job_runs(cluster: Cluster) -> None:
    worker = cluster.working("w")
    for body, headers, content_type, _kind in BAD.values():
        publish(cluster, body, headers, content_type=content_type)
    cluster.beat("beat")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED")
    assert worker.running
    wait_for(lambda: len(letters(cluster)) == len(BAD), 20, "all of them on the list")
    found = letters(cluster)
    assert sorted(letter.kind or "" for letter in found) == sorted(kind for _b, _h, _c, kind in BAD.values())
    assert {letter.queue for letter in found} == {"celery"}
    assert [line.job_id for line in cluster.lines(what="start")] == [good]


@ON_BOTH
def test_a_message_is_kept_as_it_was_and_runs_once_somebody_knows_its_task(cluster: Cluster) -> None:
    cluster.beat("beat")
    early = cluster.working("early")
    publish(cluster, b"[[], {}, {}]", {"id": "m1", "task": "failing.late", "lang": "py"})
    letter = one_letter(cluster, kind="unknown_task")
    assert (letter.what, letter.task, letter.queue) == ("message", "failing.late", "celery")
    copy = wait_for_copies(cluster, {letter.id})[letter.id]
    assert (copy.payload, copy.headers["id"], copy.headers["lang"]) == ([[], {}, {}], "m1", "py")
    early.kill()
    cluster.env["FAULT_LATE"] = "1"
    cluster.working("late")
    retry_dead_letter(cluster.database, letter.id)
    wait_for(lambda: cluster.lines(what="plain"), 20, "the message to run")
    wait_for_copies(cluster, set())
    assert letters(cluster) == []


@ON_BOTH
def test_a_job_that_nobody_knows_is_the_dead_letter_not_its_message(cluster: Cluster) -> None:
    cluster.beat("beat")
    cluster.working("w")
    job_id = cluster.demand("nobody.knows")
    letter = one_letter(cluster)
    assert (letter.id, letter.what, letter.kind) == (job_id, "job", "unknown_task")
    assert "nobody.knows" in (letter.error or "")
    wait_for_copies(cluster, {job_id})


@ON_BOTH
def test_a_job_with_too_many_arguments_is_not_published(cluster: Cluster) -> None:
    cluster.env["CRONQ_MAX_PAYLOAD_BYTES"] = "1024"
    cluster.beat("beat")
    cluster.working("w")
    big = cluster.demand("failing.takes_one", args=["x" * 5000])
    good = cluster.demand("faults.work")
    row = cluster.wait_for_state(big, "FAILED")
    assert row["published_at"] is None
    assert "over the limit of 1024 (CRONQ_MAX_PAYLOAD_BYTES)" in row["error"]
    assert one_letter(cluster).kind == "oversized"
    cluster.wait_for_state(good, "COMPLETED")
    wait_for_copies(cluster, {big})


@ON_BOTH
def test_a_job_with_too_many_arguments_is_not_claimed(cluster: Cluster) -> None:
    cluster.beat("beat", CRONQ_MAX_PAYLOAD_BYTES="100000")
    cluster.env["CRONQ_MAX_PAYLOAD_BYTES"] = "1024"
    cluster.working("w")
    big = cluster.demand("failing.takes_one", args=["x" * 5000])
    row = cluster.wait_for_state(big, "FAILED")
    assert "(worker w@" in row["error"]
    assert (row["kind"], row["attempts"]) == ("oversized", 0)


ENVELOPE = (
    b'{"body": "W10=", "content-type": "application/json", "content-encoding": "utf-8", "headers": %b, '
    b'"properties": %b}'
)
TAG, ORIGIN = b'"delivery_tag": "t"', b'"delivery_info": {"exchange": "", "routing_key": "celery"}'
ITEMS = {
    "garbage": b"garbage",
    "a number": b"7",
    "bytes": b"\xff\xfe\x00",
    "an empty list": b"[]",
    "no properties": b"{}",
    "headers that are a list": ENVELOPE % (b"[1]", b"{" + TAG + b"," + ORIGIN + b"}"),
    "no origin": ENVELOPE % (b"{}", b"{" + TAG + b"}"),
    "half an origin": ENVELOPE % (b"{}", b"{" + TAG + b', "delivery_info": {"exchange": ""}}'),
    "an encoding nobody knows": ENVELOPE % (b"{}", b"{" + TAG + b"," + ORIGIN + b', "body_encoding": "no"}'),
    "a body that is not base64": b'{"body": "!!!", "headers": {}, "properties": {'
    + TAG
    + b","
    + ORIGIN
    + b', "body_encoding": "base64"}}',
}


def test_redis_items_that_are_no_messages_are_dead_letters_and_the_next_job_runs(cluster: Cluster) -> None:
    worker = cluster.working("w")
    with redis.Redis.from_url(cluster.broker_url) as client:
        for item in ITEMS.values():
            client.lpush("celery", item)
    cluster.beat("beat")
    good = cluster.demand("faults.work")
    cluster.wait_for_state(good, "COMPLETED")
    assert worker.running
    wait_for(lambda: len(letters(cluster, kind="malformed")) == len(ITEMS), 20, "all of them")
    with redis.Redis.from_url(cluster.env["CRONQ_REDIS_URL"]) as client:
        assert client.llen("cronq:malformed") == 0


@pytest.mark.parametrize("cluster", [("postgresql", "rabbitmq")], indirect=True, ids=["rabbitmq"])
def test_while_sql_is_away_what_nobody_can_run_stays_on_the_broker(
    cluster: Cluster, postgresql_server: PostgreSQLServer
) -> None:
    worker = cluster.working("w")
    postgresql_server.kill()
    try:
        publish(cluster, b"{", {"id": "x", "task": "faults.work"})
        wait_for(lambda: "message.not_refused" in worker.output(), 30, "the message to go back")
    finally:
        postgresql_server.start()
    letter = wait_for(lambda: letters(cluster), 20, "the dead letter", ignoring=Exception)[0]
    assert (letter.kind, letter.what) == ("undecodable", "message")
    assert worker.running
