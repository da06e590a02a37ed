"""A worker is back soon after its broker is."""

import kombu.utils.functional
import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from cronq.delivery.reconnect import reconnect_promptly


def test_a_broker_that_is_away_is_tried_each_two_seconds_however_long_it_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Celery("a", broker="amqp://127.0.0.1:9//")
    reconnect_promptly(app)
    slept: list[float] = []
    monkeypatch.setattr(kombu.utils.functional, "sleep", slept.append)
    pauses: list[float] = []
    with pytest.raises(OperationalError), app.connection_for_read() as connection:
        connection.ensure_connection(lambda _error, pause: pauses.append(pause), 20)
    assert len(pauses) == 20
    assert max(pauses) <= 2.0
