"""What goes wrong, and what people do meanwhile: drawn at random, put to a cluster at its moment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cronq.errors import CronqError
from cronq.job import Trigger, demanded_job_id
from cronq.store import control
from cronq.store.agenda import DueJob
from cronq.store.database import is_outage
from cronq.store.jobs import add_job, request_cancel, retry_dead

from .cluster import BEATS, WORKERS, Cluster
from .kernel import Ambush, Process

ROLES: Final = (*(f"beat-{n}" for n in range(BEATS)), *(f"worker-{n}" for n in range(WORKERS)))
STORES: Final = ("sql", "redis", "broker")
LONGEST_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that happens."""

    at: float  #: seconds since the epoch
    began: float  #: the same of the life that it is part of
    kind: str
    role: str
    store: str
    lasts_s: float
    number: int

    def __str__(self) -> str:
        when, lasts = f"{self.at - self.began:7.3f} s", f"{self.lasts_s:.3f} s"
        return f"{when}  {self.kind} {self.role} {self.store} for {lasts}, #{self.number}"


Do = Callable[[Cluster, Fault], None]


def kill(cluster: Cluster, fault: Fault) -> None:
    """End a process at once; another one is started a while later."""
    cluster.processes[fault.role].kill()
    _restart_later(cluster, fault)


def kill_at_step(cluster: Cluster, fault: Fault) -> None:
    """End a process at one of its next steps: between two questions, or inside a transaction."""
    cluster.processes[fault.role].ambush = Ambush(fault.number, "kill")
    _restart_later(cluster, fault)


def kill_leader_at_step(cluster: Cluster, fault: Fault) -> None:
    """The same, of the beat that leads."""
    leader = _leader(cluster)
    if leader is not None:
        cluster.processes[leader].ambush = Ambush(fault.number, "kill")
        _restart_later(cluster, fault, leader)


def kill_all_beats(cluster: Cluster, fault: Fault) -> None:
    """End every beat; some start again only after the catch-up policies have something to decide."""
    for number in range(BEATS):
        role = f"beat-{number}"
        cluster.processes[role].kill()
        _restart_later(cluster, fault, role, extra_s=12.0 if fault.number % 2 else 0.0)


def stop(cluster: Cluster, fault: Fault) -> None:
    """Tell a beat to end, and start another."""
    role = f"beat-{fault.number % BEATS}"
    cluster.stop_beat(cluster.processes[role])
    _restart_later(cluster, fault, role)


def freeze(cluster: Cluster, fault: Fault) -> None:
    cluster.processes[fault.role].freeze(fault.lasts_s)


def freeze_at_step(cluster: Cluster, fault: Fault) -> None:
    cluster.processes[fault.role].ambush = Ambush(fault.number, "freeze", fault.lasts_s)


def freeze_leader_at_step(cluster: Cluster, fault: Fault) -> None:
    leader = _leader(cluster)
    if leader is not None:
        cluster.processes[leader].ambush = Ambush(fault.number, "freeze", fault.lasts_s)


def lose_an_answer(cluster: Cluster, fault: Fault) -> None:
    """Something is done, and the process that asked for it is told that the connection broke."""
    cluster.processes[fault.role].ambush = Ambush(fault.number, "deaf")


def cut_off(cluster: Cluster, fault: Fault) -> None:
    """Cut one process off from one store."""
    cluster.processes[fault.role].cut[fault.store] = cluster.kernel.now + fault.lasts_s


def outage(cluster: Cluster, fault: Fault) -> None:
    """Take one store away from everybody."""
    for store in _with_it(cluster, fault.store):
        cluster.kernel.outages[store] = cluster.kernel.now + fault.lasts_s


def empty_redis(cluster: Cluster, _fault: Fault) -> None:
    cluster.redis.empty()
    if cluster.redis_is_broker:
        cluster.broker.lose(1.0)


def lose_messages(cluster: Cluster, fault: Fault) -> None:
    """The broker loses most of what waits, and for a while half of what it confirms."""
    cluster.broker.lose(0.7)
    cluster.broker.forget_until = cluster.kernel.now + fault.lasts_s


def lose_deliveries(cluster: Cluster, fault: Fault) -> None:
    """Messages are handed over and never arrive; the worker that asked for them lives on."""
    cluster.broker.lose_until = cluster.kernel.now + fault.lasts_s


def double_messages(cluster: Cluster, fault: Fault) -> None:
    cluster.broker.double()
    cluster.broker.double_until = cluster.kernel.now + fault.lasts_s


def delay_messages(cluster: Cluster, fault: Fault) -> None:
    cluster.broker.delay_until = cluster.kernel.now + fault.lasts_s


def turn_wall_clock(cluster: Cluster, fault: Fault) -> None:
    cluster.processes[fault.role].wall_offset += 3600.0 if fault.number % 2 else -3600.0


def turn_redis_clock(cluster: Cluster, fault: Fault) -> None:
    cluster.redis.jump(3600.0 if fault.number % 2 else -3600.0)


def cancel_a_job(cluster: Cluster, fault: Fault) -> None:
    jobs = list(cluster.judge.jobs)
    if jobs:
        job_id = jobs[-1 - fault.number % len(jobs)]
        _operator(cluster, lambda process: request_cancel(cluster.database(process), job_id))


def send_back_the_dead(cluster: Cluster, _fault: Fault) -> None:
    dead = [job.id for job in cluster.judge.jobs.values() if job.state in ("FAILED", "TIMED_OUT")]

    def send(process: Process) -> None:
        for job_id in dead:
            retry_dead(cluster.database(process), job_id)

    _operator(cluster, send)


def pause_and_resume(cluster: Cluster, fault: Fault) -> None:
    name = cluster.schedules[fault.number % len(cluster.schedules)].name

    def act(process: Process) -> None:
        _persist(cluster, lambda: control.pause(cluster.database(process), name, note=None))
        cluster.kernel.pause(fault.lasts_s)
        _persist(cluster, lambda: control.resume(cluster.database(process), name, limit=1000))

    _operator(cluster, act)


def demand(cluster: Cluster, fault: Fault) -> None:
    """Ask for one job, twice with the same key, from two processes at once."""
    wanted = DueJob(
        id=demanded_job_id(f"key {fault.number}"), task="t", args=[], kwargs={}, trigger=Trigger.DEMAND,
        due_at=cluster.judge.moment(),
    )  # fmt: skip
    for _ in range(2):
        _operator(cluster, lambda process: add_job(cluster.database(process), wanted, due=fault.lasts_s / 4))


KINDS: Final[dict[str, tuple[int, Do]]] = {
    do.__name__: (weight, do)
    for weight, do in (
        (2, kill), (3, kill_at_step), (3, kill_leader_at_step), (1, kill_all_beats), (1, stop),
        (2, freeze), (3, freeze_at_step), (3, freeze_leader_at_step), (3, lose_an_answer),
        (3, cut_off), (2, outage), (2, empty_redis), (2, lose_messages), (2, lose_deliveries),
        (2, double_messages), (2, delay_messages), (1, turn_wall_clock), (1, turn_redis_clock),
        (1, cancel_a_job), (1, send_back_the_dead), (1, pause_and_resume), (1, demand),
    )
}  # fmt: skip
"""Each kind, with how often it is drawn."""


def draw(cluster: Cluster, *, during_s: float, count: int) -> list[Fault]:
    """Return `count` faults of the next `during_s` seconds, in order."""
    random = cluster.kernel.random
    names, weights = list(KINDS), [weight for weight, _do in KINDS.values()]
    faults = [
        Fault(
            began=cluster.kernel.began,
            at=cluster.kernel.now + random.random() * during_s,
            kind=random.choices(names, weights)[0],
            role=random.choice(ROLES),
            store=random.choice(STORES),
            lasts_s=random.random() * LONGEST_S,
            number=random.randrange(1, 40),
        )
        for _ in range(count)
    ]
    return sorted(faults, key=lambda fault: fault.at)


def heal(cluster: Cluster) -> None:
    """End every fault: start what is down, wake what is frozen, mend every link."""
    cluster.kernel.outages.clear()
    broker = cluster.broker
    broker.delay_until = broker.double_until = broker.forget_until = broker.lose_until = 0.0
    for role in ROLES:
        process = cluster.processes[role]
        process.cut.clear()
        process.ambush = None
        process.deaf = False
        process.frozen_until = 0.0
        if not process.alive:
            cluster.start(role)


def _restart_later(cluster: Cluster, fault: Fault, role: str | None = None, *, extra_s: float = 0.0) -> None:
    killed = cluster.processes[role or fault.role]

    def restart() -> None:
        if cluster.processes[killed.name.partition(".")[0]] is killed:
            if killed.alive:
                killed.kill()  # it had not come to the step at which it was to die
            cluster.start(killed.name.partition(".")[0])

    cluster.kernel.call(cluster.kernel.now + 0.2 + fault.lasts_s + extra_s, restart)


def _leader(cluster: Cluster) -> str | None:
    for role, process in cluster.processes.items():
        if process.alive and role.startswith("beat") and process.parts is not None:
            held = process.parts.leadership._held
            if held is not None:
                return role
    return None


def _with_it(cluster: Cluster, store: str) -> tuple[str, ...]:
    return ("redis", "broker") if cluster.redis_is_broker and store in ("redis", "broker") else (store,)


def _operator(cluster: Cluster, act: Callable[[Process], object]) -> None:
    """Let a process of its own do what a person or a program asks for."""
    process = cluster.add_process("operator")

    def run() -> None:
        try:
            act(process)
        except CronqError:
            pass  # refused: it is not dead, it is paused already, it is gone
        except Exception as error:
            if not is_outage(error):
                raise

    cluster.kernel.start(process, run, "operator")


def _persist(cluster: Cluster, act: Callable[[], object]) -> None:
    while True:
        try:
            act()
        except CronqError:
            return  # an answer that got lost: it was done
        except Exception as error:
            if not is_outage(error):
                raise
            cluster.kernel.pause(0.3)
        else:
            return
