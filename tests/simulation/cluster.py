"""Beats and workers of cronq, built the way `cronq.app` builds them, in simulated processes."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from celery import Celery

from cronq.app import Beat, Cronq
from cronq.context import running
from cronq.errors import Permanent
from cronq.progress.reporter import update
from cronq.schedule import CatchUp, Overlap, Schedule
from cronq.settings import Settings
from cronq.store.database import is_outage
from cronq.timing import Cron, Delay, Every
from cronq.worker.attempt import Work, run_attempt
from cronq.worker.desk import StoreDesk
from cronq.worker.verdict import RetryAsked, ToldToEnd

from .broker import Broker, Message, SimulatedPublisher
from .daylight import CRONS, ZONE, changes
from .fake_redis import RedisClient, RedisServer
from .judge import Judge
from .kernel import Event, Kernel, Process
from .patching import stage
from .sql import SimulatedDatabase, SqlServer

BEATS: Final = 2
WORKERS: Final = 2
SLOTS: Final = 2
SPINS: Final = 50
"""Rounds of a beat's loop without any time passing, after which it counts as a busy one."""
APP: Final = Celery("simulated", set_as_current=False)


class NoBoard:
    """Progress is shown to nobody."""

    def write(self, *_anything: object) -> None:
        pass


@dataclass(slots=True, eq=False)
class Cluster:
    """The stores, the processes, and what they are told to do."""

    kernel: Kernel
    sql: SqlServer
    settings: Settings
    schedules: list[Schedule]
    judge: Judge
    redis: RedisServer
    broker: Broker
    redis_is_broker: bool
    processes: dict[str, Process] = field(default_factory=dict)  #: by role: who plays it now
    started: list[Process] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[tuple[float, str, str, dict[str, Any]]] | None = None
    schedule_ids: list[str] = field(init=False)
    _incarnations: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.schedule_ids = [each.id for each in self.schedules]

    def start(self, role: str) -> None:
        """Start a process: `beat-1`, `worker-0`, …"""
        process = self.add_process(role)
        if role.startswith("beat"):
            self.kernel.start(process, lambda: self._be_beat(process), f"{process.name}/main")
        else:
            self._be_worker(process)

    def add_process(self, role: str) -> Process:
        """Return a new process, which does nothing yet; it takes the place of the last one of its role."""
        self._incarnations[role] += 1
        process = Process(f"{role}.{self._incarnations[role]}", self.kernel, started_at=self.kernel.now)
        self.started.append(process)
        self.processes[role] = process
        return process

    def stop_beat(self, process: Process) -> None:
        """Tell a beat to end, as SIGTERM does."""

        def stop() -> None:
            if process.parts is not None:
                process.parts.stop()
            process.kill()

        if process.alive:
            self.kernel.start(process, stop, f"{process.name}/signal")

    def database(self, process: Process) -> SimulatedDatabase:
        return SimulatedDatabase(self.sql, process)

    def parts(self, process: Process) -> Cronq:
        parts = Cronq(APP, self.settings)
        parts.__dict__.update(
            database=self.database(process), redis=RedisClient(self.redis, process, 1.0), board=NoBoard()
        )
        return parts

    def _be_beat(self, process: Process) -> None:
        parts = self.parts(process)
        while process.parts is None:
            try:
                process.parts = Beat(parts)
            except Exception as error:
                if not is_outage(error):
                    raise
                self.kernel.pause(0.5)  # without SQL a beat does not start; its supervisor tries again
        beat: Beat = process.parts
        beat.loop.wake = Event(self.kernel)
        beat.start()
        steps, since = 0, self.kernel.now
        while True:
            beat.loop.run_once(0.5)
            steps, since = (steps + 1, since) if self.kernel.now == since else (0, self.kernel.now)
            if steps == SPINS:
                self.judge.wrong("spin", f"{process.name} goes round and round, and waits for nothing")
            if steps >= SPINS:
                self.kernel.pause(0.01)

    def _be_worker(self, process: Process) -> None:
        desk = StoreDesk(
            self.database(process),
            RedisClient(self.redis, process, 1.0),  # type: ignore[arg-type]
            NoBoard(),  # type: ignore[arg-type]
            self.settings,
        )
        for slot in range(SLOTS):
            name = f"{process.name}/{slot}"
            self.kernel.start(process, self._slot(process, desk, name), name)

    def _slot(self, process: Process, desk: StoreDesk, name: str) -> Callable[[], None]:
        def run() -> None:
            while True:
                message = self.broker.take(process)
                process.step()
                self._attempt(desk, message, name)

        return run

    def _attempt(self, desk: StoreDesk, message: Message, worker: str) -> None:
        facts = message.facts
        work = Work(
            job_id=message.job_id,
            task="t",
            schedule=facts["schedule"],
            fire_time=facts["fire_time"],
            tenant=None,
            worker=worker,
            default_attempts=3,
        )
        ended = run_attempt(desk, work, self._body, lambda _claim: None)
        if ended.settlement is not None:
            desk.tell_leader(work, ended.settlement, facts["schedule_id"] if facts["notify"] else None)

    def _body(self) -> str:
        kernel = self.kernel
        context = running.get()
        assert context is not None
        self.judge.begins(context.id)
        long = kernel.random.random() < 0.2
        most = 2.0 * self.settings.lease_s if long else 0.3
        lasts = most * kernel.random.random()
        steps = 4 if long else 1
        for step in range(steps):
            update(step, steps)
            kernel.pause(lasts / steps)
            kernel.process().step()
        fate = kernel.random.random()
        if fate < 0.12:
            raise RetryAsked(ConnectionError("flaky"), kernel.random.choice((0.2, 1.5)), 3)
        if fate < 0.14:
            raise Permanent("no use")
        if fate < 0.16:
            raise ToldToEnd
        return "done"


def build(kernel: Kernel, sql: SqlServer, *, trace: bool = False) -> Cluster:
    """Return a cluster of the kernel's choice, its processes not started yet."""
    random = kernel.random
    settings = Settings.model_construct(
        **{name: field.default for name, field in Settings.model_fields.items()},
    ).model_copy(
        update={
            "lock_s": random.choice((0.6, 1.2)),
            "lease_s": 1.0,
            "republish_s": 1.0,
            "horizon_s": random.choice((2.0, 8.0)),
            "deploy": None,
        }
    )
    judge = Judge(kernel, sql)
    cluster = Cluster(
        kernel=kernel,
        sql=sql,
        settings=settings,
        schedules=_schedules(kernel),
        judge=judge,
        redis=RedisServer(kernel),
        broker=Broker(kernel),
        redis_is_broker=random.random() < 0.5,
        trace=[] if trace else None,
    )
    _connect(cluster)
    return cluster


def _connect(cluster: Cluster) -> None:
    kernel, judge = cluster.kernel, cluster.judge

    def note(event: str, **facts: Any) -> None:
        cluster.counts[event] += 1
        if cluster.trace is not None:
            name = "-" if kernel.current is None else kernel.current.name
            cluster.trace.append((kernel.now - kernel.began, name, event, facts))
        if facts.get("raised") is not None:
            judge.wrong("unexpected", f"{event}: {facts['raised']!r}")

    kernel.note = note
    kernel.on_crash = lambda thread, error: judge.wrong("ended", f"{thread.name} ended by itself: {error!r}")
    judge.cluster = cluster
    cluster.sql.reset(kernel, judge.saw)
    cluster.redis.on_taken = judge.lock_taken
    stage.kernel = kernel
    stage.collect = lambda: list(cluster.schedules)
    stage.open_database = lambda: cluster.database(kernel.process())
    stage.open_redis = lambda timeout_s: RedisClient(cluster.redis, kernel.process(), timeout_s)
    stage.open_publisher = lambda: SimulatedPublisher(cluster.broker, kernel.process())


def _schedules(kernel: Kernel) -> list[Schedule]:
    if not changes(kernel.began):
        return [_schedule(kernel, number) for number in range(2)]
    crons = [_in_paris(kernel, name, expression) for name, expression in CRONS.items()]
    return [_schedule(kernel, 0), *crons]


def _in_paris(kernel: Kernel, name: str, expression: str) -> Schedule:
    return Schedule(
        name=name, task="t", timing=Cron(expression, tz=ZONE.key).to_data(),
        overlap=kernel.random.choice(list(Overlap)), buffer=2, catch_up=kernel.random.choice(list(CatchUp)),
        catch_up_window=timedelta(hours=1),
    )  # fmt: skip


def _schedule(kernel: Kernel, number: int) -> Schedule:
    random = kernel.random
    if number == 1 and random.random() < 0.2:
        return Schedule(name="delay", task="t", timing=Delay(timedelta(seconds=1)).to_data())
    anchor = datetime.fromtimestamp(kernel.began, UTC) + timedelta(seconds=random.random())
    period = timedelta(seconds=random.choice((0.8, 1.5)))
    return Schedule(
        name=f"every-{number}",
        task="t",
        timing=Every(period, anchor).to_data(),
        overlap=random.choice(list(Overlap)),
        buffer=2,
        catch_up=random.choice(list(CatchUp)),
        catch_up_window=timedelta(seconds=random.choice((15, 3600))),
    )
