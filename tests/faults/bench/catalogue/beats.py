"""Beats that are killed, frozen or told to stop: at any moment, and at every named step."""

from functools import partial

import psutil

from tests.faults.bench.catalogue.kinds import KINDS, Kind, kind
from tests.faults.bench.injector import HANDOVER_RECOVER_S, Injector
from tests.faults.bench.installation import BEATS
from tests.faults.bench.timings import LOCK_S

FROZEN_S = 3 * LOCK_S
HIT_WITHIN_S = 30.0


@kind("leader killed")
def leader_killed(injector: Injector) -> None:
    at = injector.installation
    leader = at.leader()
    with injector.fault("leader killed", recover_s=HANDOVER_RECOVER_S, handover=True):
        at.kill(leader)
    injector.wait(LOCK_S + 1.0)


@kind("leader told to stop")
def leader_told_to_stop(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("leader told to stop", recover_s=HANDOVER_RECOVER_S, handover=True):
        at.stop(at.leader())


@kind("leader frozen")
def leader_frozen(injector: Injector) -> None:
    leader = injector.installation.leader()
    with (
        injector.fault("leader frozen", recover_s=HANDOVER_RECOVER_S, handover=True),
        injector.frozen(leader),
    ):
        injector.wait(FROZEN_S)


@kind("standby killed")
def standby_killed(injector: Injector) -> None:
    injector.note("standby killed", recover_s=0.0)
    injector.installation.kill(injector.installation.standby())


@kind("standby told to stop")
def standby_told_to_stop(injector: Injector) -> None:
    with injector.fault("standby told to stop", recover_s=0.0):
        injector.installation.stop(injector.installation.standby())


@kind("standby frozen")
def standby_frozen(injector: Injector) -> None:
    standby = injector.installation.standby()
    with injector.fault("standby frozen", recover_s=0.0), injector.frozen(standby):
        injector.wait(FROZEN_S)


@kind("all beats killed")
def all_beats_killed(injector: Injector) -> None:
    at = injector.installation
    with injector.fault("all beats killed"):
        for name in BEATS:
            at.kill(name)
        injector.wait(2.0)
        for name in BEATS:
            at.start(name)
        injector.all_ready()


def _killed_at(failpoint: str, nth: int, injector: Injector) -> None:
    at = injector.installation
    armed = injector.armed_beat_leads(f"{failpoint}:{nth}:kill")
    at.down.add(armed)  # it will end by itself, and that is its fault
    process = at.processes[armed]
    injector.wait_until(lambda: not process.running, HIT_WITHIN_S, f"{failpoint} to be hit")
    injector.note(f"leader killed at {failpoint}", **_handover(injector, armed), failpoint=failpoint)
    injector.wait(LOCK_S + 1.0)


def _frozen_at(failpoint: str, nth: int, injector: Injector) -> None:
    at = injector.installation
    armed = injector.armed_beat_leads(f"{failpoint}:{nth}:stop")
    process = psutil.Process(at.processes[armed].pid)
    injector.wait_until(
        lambda: process.status() == psutil.STATUS_STOPPED, HIT_WITHIN_S, f"{failpoint} to be hit"
    )
    with (
        injector.fault(
            f"leader frozen at {failpoint}", **_handover(injector, armed), failpoint=failpoint
        ),
        injector.frozen(armed),
    ):  # fmt: skip
        injector.wait(FROZEN_S)


def _handover(injector: Injector, lost: str) -> dict[str, object]:
    """Return what a hand-over may take; it is measured only if somebody stands by."""
    at = injector.installation
    stands_by = all(at.ready(name) for name in at.beats if name != lost)
    return {"recover_s": HANDOVER_RECOVER_S if stands_by else 15.0, "handover": stands_by}


# A plan is made about once a second, a batch is sent about ten times a second: the other beat, which was told
# to stop for it, is up again by then.
STEPS = {
    "before_plan": 4, "mid_plan": 4, "after_plan": 4,
    "before_publish": 45, "after_publish_before_mark": 45, "before_mark": 45,
}  # fmt: skip
for _step, _nth in STEPS.items():
    _name = f"leader killed at {_step}"
    KINDS[_name] = Kind(_name, partial(_killed_at, _step, _nth))
    _name = f"leader frozen at {_step}"
    KINDS[_name] = Kind(_name, partial(_frozen_at, _step, _nth))
