"""A batch whose leader, or whose finder of items, is killed in the middle: no item is doubled or lost."""

import signal
from collections import Counter
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cronq.store.batches import list_batches
from cronq.store.jobs import JobFilter, list_jobs
from tests.support.processes import Process, wait_for

from .cluster import Cluster

APP = "tests.support.fan_out_app"
ITEMS = 1200
ON_BOTH = pytest.mark.parametrize(
    "cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True, ids=["redis", "rabbitmq"]
)


class FanOut:
    """One installation with one fan-out, and the chain behind it."""

    def __init__(self, cluster: Cluster, *, ahead_s: float = 12) -> None:
        self.cluster, self.database = cluster, cluster.database
        self.fire_time = (cluster.now() + timedelta(seconds=ahead_s)).replace(microsecond=0)
        self.env = {
            **cluster.env,
            "FAN_OUT_AT": self.fire_time.isoformat(),
            "FAN_OUT_ITEMS": str(ITEMS),
        }

    def beat(self, name: str, failpoint: str | None = None) -> Process:
        extra = {} if failpoint is None else {"CRONQ_FAILPOINT": failpoint}
        return self.cluster.processes.beat(name, APP, env={**self.env, **extra})

    def worker(self, name: str, failpoint: str | None = None, pool: str = "threads") -> Process:
        extra = {} if failpoint is None else {"CRONQ_FAILPOINT": failpoint}
        options = ("--pool", pool, "-c", "4", "--without-mingle", "--without-gossip")
        return self.cluster.processes.worker(name, APP, *options, env={**self.env, **extra})

    def lines(self, what: str) -> list[str]:
        if not self.cluster.journal.exists():
            return []
        found = [line.split() for line in self.cluster.journal.read_text().splitlines()]
        return [detail for kind, _job, detail in found if kind == what]

    def finish(self, timeout: float = 100) -> None:
        """Wait until the batch, what follows it, and the chain behind it have ended; then judge."""
        wait_for(
            lambda: "mail" in self.lines("step") and self.lines("sum_up"),
            timeout,
            "the batch, its summary and the chain to be done",
            ignoring=DBAPIError,
        )
        (batch,) = list_batches(self.database)
        assert (batch.status, batch.total, batch.counts) == ("completed", ITEMS, {"COMPLETED": ITEMS})
        assert batch.fire_time == self.fire_time
        with self.database.autocommit() as connection:
            rows = connection.execute(text("SELECT item, count(*) FROM cronq_job WHERE batch_id = :id"
                " AND id <> batch_id GROUP BY item"), {"id": batch.id}).all()  # fmt: skip
        assert len(rows) == ITEMS
        assert {count for _item, count in rows} == {1}
        assert self.lines("sum_up") == [f"{ITEMS}/{ITEMS}"]
        assert self.lines("step") == ["report", "mail"]
        assert set(self.lines("work")) == {f"item-{number:05}" for number in range(ITEMS)}

    def doubled(self) -> list[str]:
        return [item for item, count in Counter(self.lines("work")).items() if count > 1]

    def state_of(self, schedule: str) -> list[str]:
        return [row["state"] for row in list_jobs(self.database, JobFilter(schedule=schedule), limit=9)]


@ON_BOTH
def test_a_leader_killed_while_it_publishes_the_items_loses_and_doubles_none(cluster: Cluster) -> None:
    here = FanOut(cluster)
    doomed = here.beat("doomed", "after_publish_before_mark:2:kill")
    cluster.wait_for_lead(doomed)
    here.worker("w")
    assert doomed.wait(60) == -signal.SIGKILL
    here.beat("heir")
    here.finish()
    assert here.doubled() == []


@ON_BOTH
def test_a_worker_killed_while_it_finds_the_items_is_replaced_and_doubles_none(cluster: Cluster) -> None:
    here = FanOut(cluster)
    cluster.wait_for_lead(here.beat("beat"))
    doomed = here.worker("doomed", "mid_expansion:2:kill", pool="solo")
    assert doomed.wait(60) == -signal.SIGKILL
    with cluster.database.autocommit() as connection:
        found = connection.execute(text("SELECT total FROM cronq_batch")).scalar_one()
    assert 0 < found < ITEMS
    here.worker("heir")
    here.finish()
    assert here.doubled() == []
    (batch,) = list_batches(here.database)
    assert [outcome for _n, outcome, _k in cluster.attempts(batch.id)] == ["LOST", "COMPLETED"]


@pytest.mark.parametrize("failpoint", ["before_batch_end:1:kill", "before_let_go:3:kill"])
def test_a_leader_killed_at_the_end_of_a_batch_lets_what_follows_run_once(
    cluster: Cluster, failpoint: str
) -> None:
    here = FanOut(cluster)
    doomed = here.beat("doomed", failpoint)
    cluster.wait_for_lead(doomed)
    here.worker("w")
    assert doomed.wait(60) == -signal.SIGKILL
    here.beat("heir")
    here.finish()


def test_items_are_there_before_their_fire_time_and_none_starts_early(cluster: Cluster) -> None:
    here = FanOut(cluster)
    cluster.wait_for_lead(here.beat("beat"))
    here.worker("w")
    wait_for(lambda: [b for b in list_batches(here.database) if not b.finding], 40, "the items to be found")
    assert cluster.now() < here.fire_time
    here.finish()
    with cluster.database.autocommit() as connection:
        earliest = connection.execute(
            text("SELECT min(started_at) FROM cronq_job WHERE id <> batch_id")
        ).scalar_one()
    if isinstance(earliest, str):
        earliest = datetime.fromisoformat(f"{earliest}+00:00")
    assert earliest >= here.fire_time - timedelta(seconds=0.5)


def test_chains_groups_and_chords_started_by_a_task_run_as_ever(cluster: Cluster) -> None:
    here = FanOut(cluster, ahead_s=3600)
    cluster.wait_for_lead(here.beat("beat"))
    here.worker("w")
    job_id = cluster.demand("fan.canvas")
    row = cluster.wait_for_state(job_id, "COMPLETED", timeout=40)
    assert row["result"] == "started"
    wait_for(lambda: here.lines("total"), 30, "the chord's body")
    expected = ["1+2", "3+3", "0+10", "1+10", "2+10", "0+100", "1+100", "2+100"]
    wait_for(lambda: Counter(here.lines("add")) == Counter(expected), 30, "every part of the canvas, once")
    assert here.lines("total") == ["303"]
