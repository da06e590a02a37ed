"""What a worker holds of Redis's queues: a job's message is noted in SQL alone, any other in Redis."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
import redis
from kombu.transport import redis as transport

from cronq.delivery.message import HEADER
from cronq.delivery.receipts import Receipts

QUEUE = "receipts"


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url, decode_responses=True)


@pytest.fixture
def consumer(redis_url: str, monkeypatch) -> Iterator[Any]:
    monkeypatch.setattr(transport.Channel, "QoS", Receipts)
    with kombu.Connection(redis_url) as connection:
        yield connection.SimpleQueue(QUEUE)


def send(consumer: Any, text: str, **headers: Any) -> None:
    consumer.producer.publish(text, routing_key=QUEUE, headers=headers)


def waiting(client: redis.Redis) -> int:
    return int(client.llen(QUEUE))


def test_a_job_is_not_noted_and_another_message_is(consumer, client):
    send(consumer, "job", **{HEADER: {"v": 1}})
    send(consumer, "other")
    job, other = consumer.get(timeout=5), consumer.get(timeout=5)
    assert list(client.hkeys("unacked")) == [other.delivery_tag]
    job.ack()
    other.ack()
    assert client.hlen("unacked") == waiting(client) == 0


def test_a_shutdown_puts_back_the_jobs_that_were_not_begun_and_no_other(consumer, client):
    for number in range(3):
        send(consumer, f"job {number}", **{HEADER: {"v": 1}})
    begun, *_rest = [consumer.get(timeout=5) for _ in range(3)]
    begun.ack()
    assert waiting(client) == 0
    consumer.channel.close()
    texts = {body_of(each) for each in client.lrange(QUEUE, 0, -1)}
    assert texts == {"job 1", "job 2"}


def test_a_job_that_is_refused_goes_back_to_its_queue_and_says_so(consumer, client):
    send(consumer, "job", **{HEADER: {"v": 1}})
    consumer.get(timeout=5).requeue()
    assert waiting(client) == 1
    again = consumer.get(timeout=5)
    assert (again.payload, again.delivery_info["redelivered"]) == ("job", True)
    again.reject()
    assert waiting(client) == 0


def test_a_message_of_no_job_is_put_back_too(consumer, client):
    send(consumer, "other")
    consumer.get(timeout=5).requeue()
    assert (waiting(client), client.hlen("unacked")) == (1, 0)


def body_of(envelope: str) -> str:
    return base64.b64decode(json.loads(envelope)["body"]).decode()


def test_a_channel_whose_connection_was_given_up_closes_in_peace(consumer, client):
    send(consumer, "job", **{HEADER: {"v": 1}})
    consumer.get(timeout=5)
    # As Celery leaves it when the broker breaks the connection while a worker asks for the next message.
    consumer.channel.connection.client = None
    consumer.channel.close()
    assert waiting(client) == 0, "the leader sends it again"
