"""Cuts in the network between one process and one server, both ways and one way."""

from functools import partial

from tests.faults.bench.catalogue.kinds import KINDS, Kind, kind
from tests.faults.bench.injector import HANDOVER_RECOVER_S, Injector
from tests.faults.bench.proxy import DOWN, UP
from tests.faults.bench.timings import LEASE_S, LOCK_S

CUT_S = 4 * LOCK_S
WORKER = "w1"


def _leader_cut(store: str, directions: tuple[str, ...], kind_name: str, injector: Injector) -> None:
    at = injector.installation
    link = at.links[at.leader(), store]
    # Without Redis or SQL it loses the lead; without the broker it keeps it, and sends when it can.
    recover_s = HANDOVER_RECOVER_S if store == "redis" and at.rabbitmq is not None else 15.0
    with injector.fault(kind_name, recover_s=recover_s):
        link.cut(*directions)
        injector.wait(CUT_S)
        link.heal()


def _worker_cut(store: str, directions: tuple[str, ...], kind_name: str, injector: Injector) -> None:
    at = injector.installation
    lost = frozenset([WORKER]) if store == "sql" else frozenset()
    link = at.links[WORKER, store]
    with injector.fault(kind_name, hurt=lost):
        link.cut(*directions)
        injector.wait(LEASE_S + 2.0)
        link.heal()


_WAYS = {"cut off from": (UP, DOWN), "without answers from": (DOWN,)}
_STORES = {"redis": None, "broker": None, "sql": "postgresql"}
for _store, _database in _STORES.items():
    for _how, _directions in _WAYS.items():
        for _who, _do in (("leader", _leader_cut), ("worker", _worker_cut)):
            _name = f"{_who} {_how} {_store}"
            KINDS[_name] = Kind(_name, partial(_do, _store, _directions, _name), database=_database)


@kind("connections reset")
def connections_reset(injector: Injector) -> None:
    with injector.fault("connections reset"):
        for link in injector.installation.links.values():
            link.reset()
