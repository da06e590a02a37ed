"""Beats that are killed, frozen or told to stop, and the one that goes on."""

import signal

import pytest

from tests.support.processes import wait_for

from .cluster import LOCK_S, SECOND, Cluster, stopped_by_itself, wake

KILLED_AT = [
    ("before_plan", ("sqlite", "redis")),
    ("mid_plan", ("postgresql", "redis")),
    ("after_plan", ("sqlite", "rabbitmq")),
    ("before_publish", ("postgresql", "rabbitmq")),
    ("after_publish_before_mark", ("sqlite", "redis")),
    ("before_mark", ("postgresql", "rabbitmq")),
]


@pytest.mark.parametrize(
    ("failpoint", "cluster"), KILLED_AT, indirect=["cluster"], ids=[name for name, _ in KILLED_AT]
)
def test_a_leader_killed_at_any_step_loses_and_doubles_nothing(failpoint: str, cluster: Cluster) -> None:
    cluster.worker("w")
    leader = cluster.leading_beat("leader", f"{failpoint}:3:kill")
    standby = cluster.beat("standby")
    assert leader.wait(20) == -signal.SIGKILL
    assert cluster.wait_for_lead(standby).term == 2
    cluster.run_and_check()


FROZEN_AT = [
    ("before_publish", ("sqlite", "redis")),
    ("after_publish_before_mark", ("postgresql", "redis")),
]


@pytest.mark.parametrize(
    ("failpoint", "cluster"), FROZEN_AT, indirect=["cluster"], ids=[name for name, _ in FROZEN_AT]
)
def test_a_leader_that_wakes_in_the_middle_of_a_step_loses_to_the_new_one(
    failpoint: str, cluster: Cluster
) -> None:
    cluster.worker("w")
    zombie = cluster.leading_beat("zombie", f"{failpoint}:3:stop")
    standby = cluster.beat("standby")
    wait_for(lambda: stopped_by_itself(zombie), 20, "the leader to freeze")
    cluster.wait_for_lead(standby)
    cluster.wait_for_fires(1)
    wake(zombie)
    wait_for(lambda: "leadership.lost" in zombie.output(), 15, "the woken beat to step down")
    cluster.run_and_check()
    assert zombie.running, "it stands by; it does not end"
    assert cluster.wait_for_lead(standby).term == 2


def test_a_leader_frozen_past_its_lock_loses_to_the_standby_and_stands_by(cluster: Cluster) -> None:
    cluster.worker("w")
    leader = cluster.leading_beat("leader")
    standby = cluster.beat("standby")
    cluster.wait_for_fires(1)
    leader.pause()
    frozen_at = cluster.now()
    cluster.wait_for_lead(standby)
    cluster.wait_for_fires(1)
    leader.resume()
    wait_for(lambda: "leadership.lost" in leader.output(), 15, "the woken beat to step down")
    cluster.run_and_check()
    assert leader.running
    assert cluster.worst_lateness(frozen_at, cluster.now() - SECOND) < LOCK_S + 2


def test_a_leader_told_to_stop_hands_over_long_before_its_lock_would_expire(cluster: Cluster) -> None:
    # Nor does the standby look by itself in time: it is told.
    long = {"CRONQ_LOCK_S": "20", "CRONQ_STANDBY_POLL_S": "10"}
    cluster.worker("w")
    leader = cluster.leading_beat("leader", **long)
    standby = cluster.beat("standby", **long)
    wait_for(lambda: "beat: Starting" in standby.output(), 20, "the standby to start")
    cluster.wait_for_fires(1)
    told_at = cluster.now()
    assert leader.stop() == 0
    cluster.wait_for_lead(standby, timeout=5)
    cluster.run_and_check()
    assert cluster.worst_lateness(told_at, cluster.now() - SECOND) < 1.5


def test_when_all_beats_were_dead_the_next_one_makes_up_for_it(cluster: Cluster) -> None:
    cluster.worker("w")
    first = cluster.leading_beat("first")
    cluster.wait_for_fires(1)
    first.kill()
    until = cluster.now() + 4 * SECOND
    wait_for(lambda: cluster.now() >= until, 10, "four seconds without a beat")
    cluster.leading_beat("second")
    cluster.run_and_check()


@pytest.mark.parametrize("cluster", [("postgresql", "redis")], indirect=True)
def test_two_beats_that_both_believe_they_lead_plan_each_fire_time_once(cluster: Cluster) -> None:
    cluster.worker("w")
    # Each has a Redis namespace of its own, so each holds "the" lock; SQL's term has to tell them apart.
    beats = [cluster.beat(f"beat{n}", CRONQ_KEY_PREFIX=f"split{n}:") for n in (1, 2)]
    wait_for(lambda: (term := cluster.term()) is not None and term.term >= 4, 20, "the two to fight")
    cluster.run_and_check()
    assert all(beat.running for beat in beats)
