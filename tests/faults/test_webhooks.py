"""The end of a job is told to a receiver that is down when it is back; and never to an inner address."""

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select
from standardwebhooks import Webhook

from cronq.declaration import cron
from cronq.store import control
from cronq.store.tables import job
from tests.support.processes import wait_for
from tests.support.server import free_port

from .cluster import Cluster

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
CLUSTERS = [("sqlite", "redis"), ("postgresql", "rabbitmq")]
ON_BOTH = pytest.mark.parametrize("cluster", CLUSTERS, indirect=True, ids="-".join)


@contextmanager
def receiving(port: int) -> Iterator[list[tuple[dict[str, str], bytes]]]:
    seen: list[tuple[dict[str, str], bytes]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()
            seen.append(({name.lower(): value for name, value in self.headers.items()}, body))

        def log_message(self, *_args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield seen
        server.shutdown()
        thread.join()


def start(cluster: Cluster, *, allow: str) -> None:
    cluster.env |= {
        "FAULT_SCHEDULES": "0",
        "CRONQ_WEBHOOK_SECRET": SECRET,
        "CRONQ_WEBHOOK_ALLOW": allow,
    }
    cluster.beat("beat")
    cluster.working("w")


def webhook_of(cluster: Cluster) -> str:
    """Return the id of the job that tells, once there is one."""
    query = select(job.c.id).where(job.c.task == "cronq.webhook")

    def find() -> str | None:
        with cluster.database.autocommit() as connection:
            found: str | None = connection.execute(query).scalar_one_or_none()
        return found

    found = wait_for(find, 20, "the job that tells")
    assert found is not None
    return found


@ON_BOTH
def test_a_receiver_that_is_down_is_told_when_it_is_back(cluster: Cluster) -> None:
    start(cluster, allow="127.0.0.1")
    port = free_port()
    job_id = cluster.demand("faults.work", callback_url=f"http://127.0.0.1:{port}/hook")
    webhook = webhook_of(cluster)
    wait_for(lambda: cluster.attempts(webhook), 20, "the first attempt to fail")
    with receiving(port) as seen:
        cluster.wait_for_state(webhook, "COMPLETED", timeout=30)
    ((headers, body),) = seen
    told = Webhook(SECRET).verify(body, headers)
    assert headers["webhook-id"] == webhook
    assert told["type"] == "job.completed"
    assert (told["data"]["id"], told["data"]["status"]) == (job_id, "COMPLETED")
    assert json.loads(body)["data"]["type"] == "faults.work"
    assert [outcome for _, outcome, _ in cluster.attempts(webhook)] == ["FAILED", "COMPLETED"]


@ON_BOTH
def test_an_inner_address_is_never_sent_to_and_the_refusal_is_a_dead_letter(cluster: Cluster) -> None:
    start(cluster, allow="")
    port = free_port()
    with receiving(port) as seen:
        cluster.demand("faults.work", callback_url=f"http://localhost:{port}/hook")
        row = cluster.wait_for_state(webhook_of(cluster), "FAILED")
    assert seen == []
    assert row["dead_at"] is not None
    assert "CRONQ_WEBHOOK_ALLOW" in row["error"]


@ON_BOTH
def test_the_end_of_a_whole_batch_is_told_once(cluster: Cluster) -> None:
    start(cluster, allow="127.0.0.1")
    port = free_port()
    with receiving(port) as seen:
        # The task takes no item, so that each of them is out of attempts at once.
        batch = cron("0 0 1 1 *", fan_out=["a", "b", "c"], callback_url=f"http://127.0.0.1:{port}/hook")
        control.write(cluster.database, batch.schedule(name="fan", task="faults.work"), actor="test")
        batch_id, _new = control.trigger(cluster.database, "fan")
        cluster.wait_for_state(webhook_of(cluster), "COMPLETED", timeout=30)
    ((headers, body),) = seen
    told = Webhook(SECRET).verify(body, headers)
    assert told["type"] == "batch.failed"
    assert (told["data"]["id"], told["data"]["total"], told["data"]["failed"]) == (batch_id, 3, 3)
