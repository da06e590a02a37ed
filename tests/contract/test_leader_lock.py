"""The leader's lock on a real Redis."""

from queue import SimpleQueue
from typing import Any

import redis

from cronq.coordination.lock import LeaderLock, Renewal
from cronq.coordination.notices import NOTICES, RELEASED, listen_for_notices, send_notice
from cronq.coordination.redis_client import open_redis
from cronq.progress.channel import channel
from tests.support.processes import wait_for
from tests.support.servers import RedisServer

LOCK_S = 20.0


def lock(redis_url: str, holder: str) -> tuple[LeaderLock, redis.Redis]:
    client = open_redis(redis_url)
    return LeaderLock(client, prefix="t:", shard=0, holder=holder, lock_s=LOCK_S), client


def test_of_two_beats_one_gets_the_lock_and_the_other_cannot_release_it(redis_url: str) -> None:
    first, _client = lock(redis_url, "first")
    second, _client = lock(redis_url, "second")
    assert first.take()
    assert not second.take()
    second.release()
    assert second.renew() is Renewal.LOST
    assert first.renew() is Renewal.HELD


def test_a_lock_that_redis_forgot_is_regained(redis_url: str) -> None:
    first, client = lock(redis_url, "first")
    assert first.take()
    client.flushdb()
    assert first.renew() is Renewal.REGAINED
    assert first.renew() is Renewal.HELD


def test_a_dead_leaders_lock_does_not_outlast_its_time_because_redis_clock_was_set_back(
    redis_url: str,
) -> None:
    dead, client = lock(redis_url, "dead")
    standby, _client = lock(redis_url, "standby")
    assert dead.take()
    client.pexpire(dead.key, 3_600_000)  # what is left of it once the clock was set back by an hour
    assert not standby.take()
    assert client.pttl(dead.key) <= LOCK_S * 1000
    assert not standby.take()
    assert client.get(dead.key) == "dead"


def test_looking_at_a_lock_never_prolongs_it(redis_url: str) -> None:
    holder, client = lock(redis_url, "holder")
    standby, _client = lock(redis_url, "standby")
    assert holder.take()
    client.pexpire(holder.key, 5_000)
    assert not standby.take()
    assert client.pttl(holder.key) <= 5_000


def test_every_standby_hears_that_the_lock_is_free(redis_url: str) -> None:
    holder, client = lock(redis_url, "holder")
    heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
    standby = listen_for_notices(client, "t:", heard.put)
    standby.start()
    assert heard.get(timeout=10) == {"kind": "listening"}
    # What is sent before Redis has the subscription is lost; a standby looks by itself, too.
    wait_for(lambda: client.pubsub_channels("t:notices*"), 10, "the subscription")
    holder.tell_free()
    assert heard.get(timeout=10) == {"kind": RELEASED}
    standby.stop()


def test_messages_that_nobody_can_read_do_not_end_the_listening(redis_url: str) -> None:
    client = open_redis(redis_url)
    heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
    listener = listen_for_notices(client, "odd:", heard.put)
    listener.start()

    def wait_until_it_listens() -> None:
        assert heard.get(timeout=10) == {"kind": "listening"}
        wait_for(lambda: client.pubsub_channels("odd:notices*"), 10, "the subscription")

    wait_until_it_listens()
    for odd in (b"[]", b"{", b"\xff"):
        client.publish(channel(client, "odd:", NOTICES), odd)
    wait_until_it_listens()  # after the last one it begins anew
    send_notice(client, "odd:", "job", job_id="j")
    assert heard.get(timeout=10) == {"kind": "job", "job_id": "j"}
    listener.stop()


def test_a_notice_is_not_heard_in_another_database_of_the_same_server(redis_server: RedisServer) -> None:
    ours, theirs = (open_redis(redis_server.database(number)) for number in (1, 2))
    heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
    standby = listen_for_notices(ours, "t:", heard.put)
    standby.start()
    assert heard.get(timeout=10) == {"kind": "listening"}
    wait_for(lambda: ours.pubsub_channels("t:notices*"), 10, "the subscription")
    send_notice(theirs, "t:", "schedule", schedule_id="theirs")
    send_notice(ours, "t:", "schedule", schedule_id="ours")
    assert heard.get(timeout=10)["schedule_id"] == "ours"
    standby.stop()
