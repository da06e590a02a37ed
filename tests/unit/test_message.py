"""What a message shows of a job to whoever watches the events."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery

from cronq.delivery.message import Message, MessageBuilder
from cronq.job import Trigger
from cronq.store.agenda import DueJob

NOW = datetime(2026, 11, 1, 2, 30, tzinfo=UTC)
SECRET = "hunter2-hunter2"


def build(**facts: Any) -> Message:
    app = Celery("m", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.task_send_sent_event = True
    values: dict[str, Any] = {"args": [], "kwargs": {}, "trigger": Trigger.SCHEDULE, "due_at": NOW}
    job = DueJob(id="j", task="t", schedule_name="s", fire_time=NOW, **{**values, **facts})
    return MessageBuilder(app, flower_names="schedule").build(job)


@pytest.mark.parametrize(
    "facts",
    [
        {"kwargs": {"password": SECRET}},
        {"kwargs": {"account": {"api_key": SECRET, "name": "acme"}}},
        {"args": [{"access_token": SECRET}]},
        {"args": [f"postgresql://me:{SECRET}@db/x"]},
        {"kwargs": {"urls": [f"amqp://me:{SECRET}@mq//"]}},
    ],
    ids=str,
)
def test_secrets_reach_the_body_and_no_header_or_event(facts: dict[str, Any]) -> None:
    message = build(**facts)
    assert SECRET not in repr((message.headers, message.properties, message.sent_event))
    assert "***" in message.headers["argsrepr"] + message.headers["kwargsrepr"]
    args, kwargs, _embed = json.loads(message.payload)
    assert (args, kwargs) == (facts.get("args", []), facts.get("kwargs", {}))


def test_the_columns_show_fire_time_tenant_and_arguments() -> None:
    message = build(args=["march", 3], kwargs={"dry": True}, tenant="acme")
    assert message.headers["shadow"] == "s"
    assert message.headers["argsrepr"] == "2026-11-01T02:30:00Z ('march', 3)"
    assert message.headers["kwargsrepr"] == "tenant=acme {'dry': True}"
