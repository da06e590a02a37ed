"""Where does the time go? Stopwatches around cronq's functions, read from a file while the process runs.

They cost about 0.3 µs a call, so figures of a run with them are for shares only.
"""

import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITE_EACH_S = 0.5


class Stopwatches:
    """Seconds and calls by name; written to a file of this process now and then."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}
        self._write_at = 0.0

    def around(self, owner: Any, name: str) -> None:  # noqa: ANN401 - a class or a module
        """Put a stopwatch around `owner.name`."""
        function = getattr(owner, name)
        owner_name = getattr(owner, "__qualname__", owner.__name__.rpartition(".")[2])
        setattr(owner, name, self._timed(f"{owner_name}.{name.strip('_')}", function))

    def _timed(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        taken = self._taken.setdefault(label, [0.0, 0])

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                ended = time.perf_counter()
                taken[0] += ended - began
                taken[1] += 1
                if ended > self._write_at:
                    self._write_at = ended + WRITE_EACH_S
                    self._write()

        return timed

    def _write(self) -> None:
        path = Path(os.environ["BENCH_FOLDER"]) / f"timers-{os.getpid()}.json"
        path.write_text(json.dumps(self._taken))


def install() -> None:
    """Put stopwatches around what a beat and a worker do."""
    from cronq.beat import agenda, lookout, loop, planning, publishing  # noqa: PLC0415 - only when asked for
    from cronq.delivery import rabbitmq, redis_list  # noqa: PLC0415
    from cronq.worker import desk  # noqa: PLC0415

    watches = Stopwatches()
    watches.around(planning.Planning, "_plan_batch")
    for name in ("_pass_gate", "look_ahead", "mark_published", "render_ahead"):
        watches.around(publishing.Publishing, name)
    for name in ("look_for_foreign", "look_for_overdue"):
        watches.around(lookout.Lookout, name)
    watches.around(loop.Upkeep, "run_if_time")
    watches.around(agenda.Agenda, "pop_due")
    for publisher in (rabbitmq.RabbitMQPublisher, redis_list.RedisPublisher):
        watches.around(publisher, "publish")
    for name in ("claim", "settle", "hold", "let_go", "report", "tell_leader"):
        watches.around(desk.StoreDesk, name)


def read(folder: Path) -> dict[str, dict[str, float]]:
    """Return the sums of all processes that wrote into `folder`: seconds and calls by name."""
    sums: dict[str, dict[str, float]] = {}
    for path in folder.glob("timers-*.json"):
        for label, (seconds, calls) in json.loads(path.read_text()).items():
            if calls:
                known = sums.setdefault(label, {"seconds": 0.0, "calls": 0})
                known["seconds"] = round(known["seconds"] + seconds, 4)
                known["calls"] += calls
    return sums
