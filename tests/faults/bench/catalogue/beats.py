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
    injector.note(
        f"leader killed at {failpoint}", recover_s=HANDOVER_RECOVER_S, handover=True, failpoint=failpoint
    )
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
            f"leader frozen at {failpoint}",
            recover_s=HANDOVER_RECOVER_S, handover=True, failpoint=failpoint,
        ),
        injector.frozen(armed),
    ):  # fmt: skip
        injector.wait(FROZEN_S)


# A plan is made about once a second, a batch is sent about ten times a second.
STEPS = {
    "before_plan": 3, "mid_plan": 3, "after_plan": 3,
    "before_publish": 30, "after_publish_before_mark": 30, "before_mark": 30,
}  # fmt: skip
for _step, _nth in STEPS.items():
    _name = f"leader killed at {_step}"
    KINDS[_name] = Kind(_name, partial(_killed_at, _step, _nth))
    _name = f"leader frozen at {_step}"
    KINDS[_name] = Kind(_name, partial(_frozen_at, _step, _nth))
