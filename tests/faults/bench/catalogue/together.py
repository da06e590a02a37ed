"""Several faults at once."""

from tests.faults.bench.catalogue.beats import FROZEN_S
from tests.faults.bench.catalogue.kinds import kind
from tests.faults.bench.catalogue.workers import wait_until_busy
from tests.faults.bench.injector import Injector
from tests.faults.bench.proxy import DOWN, UP


@kind("leader killed while redis is frozen")
def leader_killed_while_redis_is_frozen(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("leader killed while redis is frozen"):
        at.redis.pause()
        at.kill(at.leader())
        injector.wait(2.0)
        at.redis.resume()


@kind("worker killed while postgresql restarts", database="postgresql")
def worker_killed_while_postgresql_restarts(injector: Injector) -> None:
    at = injector.installation
    wait_until_busy(injector, "w2")
    with injector.fault("worker killed while postgresql restarts", hurt=frozenset(["w2"]), deadly=True):
        at.kill("w2")
        at.postgresql.restart()


@kind("leader and worker killed")
def leader_and_worker_killed(injector: Injector) -> None:
    at = injector.installation
    wait_until_busy(injector, "w1")
    with injector.fault("leader and worker killed", hurt=frozenset(["w1"]), deadly=True):
        at.kill(at.leader())
        at.kill("w1")


@kind("redis emptied while the leader is frozen")
def redis_emptied_while_leader_frozen(injector: Injector) -> None:
    at = injector.installation
    leader = at.leader()
    with injector.fault("redis emptied while the leader is frozen"), injector.frozen(leader):
        with at.redis.client() as client:
            client.flushall()
        injector.wait(FROZEN_S)


@kind("worker cut off from everything")
def worker_cut_off(injector: Injector) -> None:
    at = injector.installation
    links = [link for (name, _store), link in at.links.items() if name == "w1"]
    with injector.fault("worker cut off from everything", hurt=frozenset(["w1"])):
        for link in links:
            link.cut(UP, DOWN)
        injector.wait(5.0)
        for link in links:
            link.heal()
