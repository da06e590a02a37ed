"""One job that cannot be sent never holds up the others."""

from collections.abc import Iterator

import pytest
from celery import Celery
from kombu import Queue

from cronq.delivery.publisher import Publisher, open_publisher
from tests.support.servers import RabbitMQServer

from .test_publishers import job, make_app, received


@pytest.fixture
def strict_app(broker_url: str) -> Iterator[Celery]:
    app = make_app(broker_url, task_queues=[Queue("celery")], task_create_missing_queues=False)
    yield app
    app.close()


@pytest.fixture
def publisher(strict_app: Celery) -> Iterator[Publisher]:
    publisher = open_publisher(strict_app, flower_names="schedule")
    yield publisher
    publisher.close()


def test_a_job_for_an_unknown_queue_is_refused_and_the_others_go_out(
    strict_app: Celery, publisher: Publisher
) -> None:
    bad, good = job(1, queue="nowhere"), job(2)
    assert publisher.publish([bad, good]) == [good.id]
    assert [message.headers["id"] for message in received(strict_app, 1)] == [good.id]


def test_a_priority_that_no_broker_knows_does_not_stop_the_others(
    strict_app: Celery, publisher: Publisher
) -> None:
    bad, good = job(1, priority=300), job(2)
    assert good.id in publisher.publish([bad, good])


def test_a_queue_that_was_deleted_is_declared_again_when_a_job_is_refused(
    rabbitmq_server: RabbitMQServer,
) -> None:
    url = rabbitmq_server.vhost()
    app = make_app(url, task_queues=[Queue("celery"), Queue("gone")])
    publisher = open_publisher(app, flower_names="schedule")
    publisher.publish([job(1, queue="gone")])
    with app.connection_for_write() as connection:
        app.amqp.queues["gone"].bind(connection.default_channel).delete()
    assert publisher.publish([job(2, queue="gone")]) == []
    again = job(3, queue="gone")
    assert publisher.publish([again]) == [again.id]
    publisher.close()
    app.close()
    rabbitmq_server.delete_vhost(url)
