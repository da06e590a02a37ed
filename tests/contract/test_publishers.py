"""A batch reaches the broker once, whole and in order, as messages that any Celery worker understands."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import kombu
import pytest
from celery import Celery, signals
from kombu import Queue

from cronq.delivery.failure import PublishFailed
from cronq.delivery.publisher import Publisher, open_publisher
from cronq.job import Trigger
from cronq.store.agenda import DueJob
from tests.support.processes import wait_for
from tests.support.servers import RabbitMQServer, RedisServer

FIRE = datetime(2026, 11, 1, 2, 30, tzinfo=UTC)


def make_app(url: str, **conf: Any) -> Celery:
    app = Celery(f"publishers-{uuid.uuid4().hex[:6]}", broker=url, set_as_current=False)
    app.conf.update(broker_connection_retry=False, **conf)
    return app


@pytest.fixture
def app(broker_url: str) -> Iterator[Celery]:
    app = make_app(broker_url)
    yield app
    app.close()


@pytest.fixture
def publisher(app: Celery) -> Iterator[Publisher]:
    publisher = open_publisher(app, flower_names="schedule")
    yield publisher
    publisher.close()


def job(number: int = 0, **facts: Any) -> DueJob:
    values: dict[str, Any] = {
        "id": f"{number:04}-{uuid.uuid4()}"[:36],
        "task": "tasks.t",
        "args": [number],
        "kwargs": {"k": "ü"},
        "due_at": FIRE,
        "trigger": Trigger.SCHEDULE,
        "schedule_name": "nightly",
        "schedule_id": str(uuid.uuid4()),
        "fire_time": FIRE,
    }
    return DueJob(**{**values, **facts})


def ids(batch: list[DueJob]) -> list[str]:
    return [each.id for each in batch]


def received(app: Celery, count: int, queue: str = "celery") -> list[Any]:
    """Consume as a worker does until `count` messages have come and the queue has no more."""
    messages: list[Any] = []

    def keep(message: Any) -> None:
        message.ack()
        messages.append(message)

    with app.connection_for_read() as connection, connection.channel() as channel:
        bound = app.amqp.queues[queue].bind(channel)
        consumer = kombu.Consumer(channel, [bound], on_message=keep, accept=["json"], prefetch_count=1)
        with consumer:
            while len(messages) < count:
                connection.drain_events(timeout=10)
            assert bound.get() is None, "there was one message more than expected"
    return messages


def test_a_batch_arrives_once_and_in_order(app: Celery, publisher: Publisher) -> None:
    batch = [job(number) for number in range(300)]
    assert publisher.publish(batch) == ids(batch)
    assert publisher.depth("celery") == 300
    assert [message.headers["id"] for message in received(app, 300)] == ids(batch)


def test_a_batch_larger_than_the_confirm_window_arrives_whole(app: Celery, publisher: Publisher) -> None:
    batch = [job(number) for number in range(2500)]
    assert publisher.publish(batch) == ids(batch)
    assert publisher.depth("celery") == 2500


def test_rendering_ahead_sends_nothing_and_changes_nothing(app: Celery, publisher: Publisher) -> None:
    ahead, now = job(1), job(2)
    publisher.render(ahead)
    assert publisher.depth("celery") == 0
    assert publisher.publish([ahead, now]) == ids([ahead, now])
    first, second = received(app, 2)
    assert set(first.headers) == set(second.headers)
    assert first.payload[0] == [1]


def test_a_celery_consumer_reads_it_like_any_task_message(app: Celery, publisher: Publisher) -> None:
    due = job(7, tenant="acme")
    publisher.publish([due])
    (message,) = received(app, 1)
    assert message.payload == [
        [7],
        {"k": "ü"},
        {"callbacks": None, "errbacks": None, "chain": None, "chord": None},
    ]
    assert (message.content_type, message.content_encoding) == ("application/json", "utf-8")
    headers = message.headers
    assert (headers["id"], headers["task"], headers["root_id"]) == (due.id, "tasks.t", due.id)
    assert message.properties["correlation_id"] == due.id
    assert headers["cronq"]["schedule"] == "nightly"
    assert headers["cronq"]["fire_time"] == "2026-11-01T02:30:00Z"
    assert headers["cronq"]["tenant"] == "acme"
    # What Sentry and other listeners look for.
    assert headers["periodic_task_name"] == "nightly"


def test_neither_eta_nor_expiry_is_ever_sent(app: Celery, publisher: Publisher) -> None:
    publisher.publish([job()])
    (message,) = received(app, 1)
    assert message.headers["eta"] is None
    assert message.headers["expires"] is None


def test_messages_outlive_a_restart_of_the_broker(app: Celery, publisher: Publisher) -> None:
    publisher.publish([job()])
    (message,) = received(app, 1)
    assert message.properties["delivery_mode"] == 2


def test_a_queue_and_a_route_are_what_celery_would_choose(broker_url: str) -> None:
    app = make_app(
        broker_url,
        task_queues=[Queue("celery"), Queue("video"), Queue("mail")],
        task_routes={"tasks.transcode": {"queue": "video"}},
    )
    publisher = open_publisher(app, flower_names="schedule")
    routed, asked, plain = job(1, task="tasks.transcode"), job(2, queue="mail"), job(3)
    assert publisher.publish([routed, asked, plain]) == ids([routed, asked, plain])
    for queue, due in (("video", routed), ("mail", asked), ("celery", plain)):
        assert publisher.queue_of(due.task, due.queue) == queue
        assert [message.headers["id"] for message in received(app, 1, queue)] == [due.id]
    publisher.close()
    app.close()


def test_a_topic_exchange_gets_its_routing_key(broker_url: str) -> None:
    exchange = kombu.Exchange("work", type="topic")
    app = make_app(
        broker_url,
        task_queues=[Queue("celery"), Queue("images", exchange, routing_key="image.#")],
        task_routes={"tasks.t": {"queue": "images", "routing_key": "image.scale"}},
    )
    publisher = open_publisher(app, flower_names="schedule")
    assert len(publisher.publish([job()])) == 1
    (message,) = received(app, 1, "images")
    assert message.headers["task"] == "tasks.t"
    publisher.close()
    app.close()


def test_higher_priorities_are_consumed_sooner(broker_url: str) -> None:
    app = make_app(broker_url, task_queues=[Queue("celery", queue_arguments={"x-max-priority": 9})])
    publisher = open_publisher(app, flower_names="schedule")
    batch = [job(number, priority=priority) for number, priority in enumerate([0, 3, 9, 6])]
    publisher.publish(batch)
    assert [message.payload[0][0] for message in received(app, 4)] == [2, 3, 1, 0]
    publisher.close()
    app.close()


def test_listeners_of_before_task_publish_add_headers(app: Celery, publisher: Publisher) -> None:
    seen: list[Any] = []

    def add_trace(sender: str, headers: dict[str, Any], **_facts: Any) -> None:
        seen.append(sender)
        headers["traceparent"] = "00-abc"

    signals.before_task_publish.connect(add_trace, weak=False)
    try:
        publisher.publish([job()])
    finally:
        signals.before_task_publish.disconnect(add_trace)
    (message,) = received(app, 1)
    assert seen == ["tasks.t"]
    assert message.headers["traceparent"] == "00-abc"


def test_listeners_of_after_task_publish_hear_only_of_what_was_sent(
    app: Celery, publisher: Publisher
) -> None:
    told: list[str] = []

    def tell(headers: dict[str, Any], **_facts: Any) -> None:
        told.append(headers["id"])

    signals.after_task_publish.connect(tell, weak=False)
    try:
        batch = [job(1), job(2)]
        for due in batch:
            publisher.render(due)
        assert told == []
        publisher.publish(batch)
    finally:
        signals.after_task_publish.disconnect(tell)
    assert told == ids(batch)


def test_task_sent_events_are_sent_when_the_app_asks_for_them(broker_url: str) -> None:
    app = make_app(broker_url, task_send_sent_event=True)
    publisher = open_publisher(app, flower_names="schedule")
    events: list[dict[str, Any]] = []
    batch = [job(1), job(2)]
    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"task-sent": events.append})
        with receiver.consumer_context() as (consuming, _channel, _consumers):

            def heard() -> bool:
                # On Redis a subscription begins with the first drain; what was sent before is not heard.
                publisher.publish(batch)
                consuming.drain_events(timeout=0.5)
                return len(events) >= 2

            wait_for(heard, 20, "the events", ignoring=TimeoutError)
    assert [event["uuid"] for event in events][:2] == ids(batch)
    assert {event["queue"] for event in events} == {"celery"}
    publisher.close()
    app.close()


def test_a_killed_broker_confirms_nothing_and_gets_all_of_it_when_it_is_back(
    request: pytest.FixtureRequest, app: Celery, publisher: Publisher
) -> None:
    kind = "redis" if app.conf.broker_url.startswith("redis") else "rabbitmq"
    server: RedisServer | RabbitMQServer = request.getfixturevalue(f"{kind}_server")
    first, second = [job(1)], [job(2), job(3)]
    assert publisher.publish(first) == ids(first)
    for due in second:
        publisher.render(due)
    server.kill()
    with pytest.raises(PublishFailed):
        publisher.publish(second)
    with pytest.raises(PublishFailed):
        publisher.publish(second)
    server.start()
    confirmed = wait_for(
        lambda: publisher.publish(second), 30, "the broker to take the batch", ignoring=PublishFailed
    )
    assert confirmed == ids(second)
    assert [message.headers["id"] for message in received(app, 3)] == ids(first + second)


@pytest.fixture
def rabbitmq_url(rabbitmq_server: RabbitMQServer) -> Iterator[str]:
    url = rabbitmq_server.vhost()
    yield url
    rabbitmq_server.delete_vhost(url)


def test_rabbitmq_refuses_what_has_no_queue_and_takes_the_rest(rabbitmq_url: str) -> None:
    app = make_app(rabbitmq_url, task_queues=[Queue("celery"), Queue("gone")])
    publisher = open_publisher(app, flower_names="schedule")
    assert len(publisher.publish([job(1, queue="gone")])) == 1
    with app.connection_for_write() as connection:
        app.amqp.queues["gone"].bind(connection.default_channel).delete()
    lost, fine = job(2, queue="gone"), job(3)
    assert publisher.publish([lost, fine]) == [fine.id]
    assert [message.headers["id"] for message in received(app, 1)] == [fine.id]
    publisher.close()
    app.close()


def test_a_frozen_broker_confirms_nothing(rabbitmq_url: str, rabbitmq_server: RabbitMQServer) -> None:
    app = make_app(rabbitmq_url)
    publisher: Any = open_publisher(app, flower_names="schedule")
    publisher.publish([job(1)])
    deadlines = pytest.MonkeyPatch()
    deadlines.setattr("cronq.delivery.rabbitmq.CONFIRM_TIMEOUT_S", 0.5)
    rabbitmq_server.pause()
    try:
        with pytest.raises(PublishFailed):
            publisher.publish([job(2)])
    finally:
        deadlines.undo()
        rabbitmq_server.resume()
    again = [job(3)]
    assert wait_for(lambda: publisher.publish(again), 20, "RabbitMQ to answer", ignoring=PublishFailed)
    publisher.close()
    app.close()


def test_redis_keys_carry_the_prefix_that_workers_look_for(redis_server: RedisServer) -> None:
    url = redis_server.database(0)
    app = make_app(url, broker_transport_options={"global_keyprefix": "acme:"})
    publisher = open_publisher(app, flower_names="schedule")
    batch = [job(1), job(2, priority=2)]
    publisher.publish(batch)
    with redis_server.client(0) as client:
        lists = [key for key in client.keys("*") if client.type(key) == "list"]
        assert lists
        assert all(key.startswith("acme:") for key in lists)
    assert publisher.depth("celery") == 2
    assert {message.headers["id"] for message in received(app, 2)} == set(ids(batch))
    publisher.close()
    app.close()


def test_redis_gets_what_celery_itself_would_have_written(redis_server: RedisServer) -> None:
    url = redis_server.database(0)
    app = make_app(url)
    due = job(1)
    publisher = open_publisher(app, flower_names="schedule")
    publisher.publish([due])
    app.send_task("tasks.t", (1,), {"k": "ü"}, task_id=due.id)
    with redis_server.client(0) as client:
        theirs, ours = (json.loads(each) for each in client.lrange("celery", 0, -1))  # type: ignore[union-attr]
    assert set(ours) == set(theirs)
    assert ours["body"] == theirs["body"]
    assert set(ours["properties"]) == set(theirs["properties"])
    assert set(theirs["headers"]) <= set(ours["headers"])
    publisher.close()
    app.close()
