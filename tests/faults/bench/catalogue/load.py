"""Wrong clocks, ten times the load, jobs that kill their process, messages that are none."""

from functools import partial

import kombu
import redis
from celery import Celery

from cronq.delivery.publisher import open_publisher
from cronq.store.agenda import read_jobs
from cronq.store.database import Database
from tests.faults.bench.catalogue.kinds import KINDS, Kind, kind
from tests.faults.bench.injector import Injector

BENT_S = 3.0
BURST = 400
COPIES = 50
POISON_WORKER = "wp"
BODIES = {
    "not JSON": (b"{", "application/json", {}),
    "a number": (b"5", "application/json", {"id": "x", "task": "bench.work"}),
    "no headers": (b"[[], {}, {}]", "application/json", {}),
    "pickle": (b"\x80\x04K\x01.", "application/x-python-serialize", {"id": "x", "task": "bench.work"}),
    "no such job": (
        b"[[], {}, {}]",
        "application/json",
        {"id": "x", "task": "bench.work", "cronq": {"v": 1}},
    ),
    "odd header": (b"[[], {}, {}]", "application/json", {"id": "y", "task": "bench.work", "cronq": "?"}),
}
ITEMS = (b"garbage", b"5", b'{"body": "!!!", "headers": {}, "properties": {}}')


def _clock(who: str, offset_s: float, drift_ppm: int, kind_name: str, injector: Injector) -> None:
    at = injector.installation
    clock = at.clocks[at.leader() if who == "leader" else who]
    # Nothing may be seen of it.
    with injector.fault(kind_name, recover_s=0.0):
        clock.bend(offset_s, drift_ppm)
        injector.wait(BENT_S)
    clock.mend()


for _who, _how, _offset_s, _ppm in (
    ("leader", "an hour ahead", 3600, 0),
    ("leader", "an hour behind", -3600, 0),
    ("leader", "drifting", 0, 50_000),
    ("w1", "an hour ahead", 3600, 0),
    ("w2", "an hour behind", -3600, 0),
):
    _name = f"clock of {_who} {_how}"
    # SQLite has no clock but that of the process that asks: there the clocks of one machine are one clock.
    KINDS[_name] = Kind(_name, partial(_clock, _who, _offset_s, _ppm, _name), database="postgresql")


@kind("ten times the load")
def overload(injector: Injector) -> None:
    with injector.fault("ten times the load"):
        injector.demand("bench.work", BURST)


@kind("poison")
def poison(injector: Injector) -> None:
    """A job that kills whoever runs it, on a worker of its own: in the others it would hit bystanders."""
    at = injector.installation
    if POISON_WORKER not in at.processes:
        at.start(POISON_WORKER, args=("--pool", "prefork", "-c", "1", "-Q", "poison"))
    with injector.fault("poison", hurt=frozenset([POISON_WORKER]), deadly=True):
        injector.demand("bench.poison", queue="poison", poison=True)


@kind("old messages come again")
def again(injector: Injector) -> None:
    """What ran is sent once more: a broker that was restored, or somebody who replays a queue."""
    at = injector.installation
    ended = (
        "SELECT id FROM cronq_job WHERE state = 'COMPLETED' AND task = 'bench.work' ORDER BY finished_at DESC"
    )
    database = Database(at.database_url)
    old = read_jobs(database, [row[0] for row in at.query(f"{ended} LIMIT {COPIES}")])
    database.dispose()
    publisher = open_publisher(Celery(broker=at.broker_url, set_as_current=False), flower_names="task")
    with injector.fault("old messages come again", recover_s=2.0):
        publisher.publish(old)
    publisher.close()


@kind("malformed messages")
def malformed(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("malformed messages", recover_s=2.0), kombu.Connection(at.broker_url) as connection:
        producer = kombu.Producer(connection.default_channel)
        for body, content_type, headers in BODIES.values():
            producer.publish(
                body, routing_key="celery", content_type=content_type, content_encoding="utf-8",
                headers=headers,
            )  # fmt: skip
        if at.rabbitmq is None:
            with redis.Redis.from_url(at.broker_url) as client:
                client.lpush("celery", *ITEMS)
