"""Backfills through real processes: the leader that carries one on dies, and the next one goes on."""

from collections import Counter
from datetime import timedelta

import pytest

from cronq.store.backfills import BackfillRange, BackfillState, get_backfill, start
from tests.support.processes import wait_for

from .cluster import SECOND, Cluster

FIRES = 60


@pytest.mark.parametrize("cluster", [("sqlite", "redis"), ("postgresql", "rabbitmq")], indirect=True)
def test_a_leader_killed_in_the_middle_of_a_backfill_loses_and_doubles_none_of_it(cluster: Cluster) -> None:
    cluster.worker("w")
    leader = cluster.leading_beat("leader")
    standby = cluster.beat("standby")
    cluster.wait_for_fires(1)
    end = (cluster.now() - timedelta(hours=1)).replace(microsecond=0)
    wanted = BackfillRange(start=end - FIRES * SECOND, end=end, concurrency=2)
    backfill_id = start(cluster.database, "s0", wanted, actor="a test")["id"]

    def done() -> int:
        return int(get_backfill(cluster.database, backfill_id)["jobs"].get("COMPLETED", 0))

    wait_for(lambda: done() >= FIRES // 6, 30, "the backfill to be under way")
    leader.kill()
    assert done() < FIRES
    cluster.wait_for_lead(standby)
    wait_for(
        lambda: get_backfill(cluster.database, backfill_id)["state"] == BackfillState.COMPLETED,
        60,
        "the next leader to bring the backfill to its end",
    )
    assert get_backfill(cluster.database, backfill_id)["jobs"] == {"COMPLETED": FIRES}
    made_up = {job["id"] for job in cluster.fires() if job["trigger"] == "backfill"}
    counts = Counter(line.job_id for line in cluster.lines(what="end") if line.job_id in made_up)
    assert set(counts.values()) == {1}
    assert len(counts) == FIRES
