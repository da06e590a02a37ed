"""Runs one simulated life of a cluster from its seed."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from .cluster import Cluster, build
from .daylight import beginning
from .faults import KINDS, ROLES, Fault, draw, heal
from .kernel import Kernel
from .sql import SqlServer

EPISODES: Final = 8
"""Schedules of faults in one life, each judged once the cluster had time to recover from it."""
FAULTS_S: Final = 2.0
"""Seconds of cluster life in which the faults of an episode begin."""
LAST_S: Final = 0.5
"""Seconds that the last of them has to show what it does."""
RECOVERY_S: Final = 60.0
"""Seconds after the faults by which everything that was due is over; judged as soon as it is."""


@dataclass(slots=True)
class Outcome:
    """What came of one seed."""

    seed: int
    violations: list[str]
    faults: list[Fault]
    counts: Counter[str]
    lived_s: float
    trace: list[str] = field(default_factory=list)


@cache
def server(without: frozenset[str]) -> SqlServer:
    """Return this process's database for simulations; without: what its tables lack."""
    return SqlServer(without)


def simulate(
    seed: int,
    *,
    episodes: int = EPISODES,
    trace: bool = False,
    without: frozenset[str] = frozenset(),
) -> Outcome:
    """Live through the faults of `seed`, and judge. Call it `on_stage`."""
    kernel = Kernel(seed, beginning(seed))
    cluster = build(kernel, server(without), trace=trace)
    for role in ROLES:
        cluster.start(role)
    faults: list[Fault] = []
    for _ in range(episodes):
        faults += _live(cluster)
        if cluster.judge.violations:
            break
    lived_s = kernel.now - kernel.began
    for process in cluster.started:
        process.kill()
    counts = cluster.counts + Counter(
        {"jobs": len(cluster.judge.jobs), "bodies": cluster.judge.bodies, "message.lost": cluster.broker.lost}
    )
    lines = [f"{at:9.4f} {who:24} {event} {facts}" for at, who, event, facts in cluster.trace or ()]
    return Outcome(seed, cluster.judge.violations, faults, counts, lived_s, lines)


def _live(cluster: Cluster) -> list[Fault]:
    """Go through one episode: faults, recovery, judgement."""
    kernel = cluster.kernel
    faults = draw(cluster, during_s=FAULTS_S, count=kernel.random.randrange(2, 6))
    for fault in faults:
        kernel.call(fault.at, lambda fault=fault: _happen(cluster, fault))  # type: ignore[misc]
    kernel.run_until(kernel.now + FAULTS_S + LAST_S)
    heal(cluster)
    healed_at = kernel.now
    while kernel.now < healed_at + RECOVERY_S and cluster.judge.unfinished(healed_at):
        kernel.run_until(kernel.now + 0.1)
    cluster.judge.conclude(healed_at)
    return faults


def _happen(cluster: Cluster, fault: Fault) -> None:
    cluster.kernel.note(f"fault.{fault.kind}", what=str(fault))
    KINDS[fault.kind][1](cluster, fault)
