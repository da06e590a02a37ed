"""A process frozen inside a transaction holds its locks: nobody else waits for it to wake."""

import pytest

from tests.support.processes import wait_for

from .cluster import Cluster, stopped_by_itself, wake


@pytest.mark.parametrize("cluster", [("postgresql", "redis")], indirect=True, ids=["postgresql"])
def test_a_leader_frozen_while_it_plans_loses_to_the_standby(cluster: Cluster) -> None:
    cluster.worker("w")
    zombie = cluster.leading_beat("zombie", "mid_plan:3:stop")
    standby = cluster.beat("standby")
    wait_for(lambda: stopped_by_itself(zombie), 20, "the leader to freeze")
    try:
        cluster.wait_for_lead(standby, timeout=8)
        cluster.wait_for_fires(1)
    finally:
        wake(zombie)
    wait_for(lambda: "leadership.lost" in zombie.output(), 15, "the woken beat to step down")
    cluster.run_and_check()
    assert zombie.running
