"""Named moments at which a test makes this process die, freeze, fail or dawdle. Off and free unless set.

`CRONQ_FAILPOINT=name:nth:action`, several separated by commas; action: kill, stop, raise, sleep=MILLISECONDS.
"""

import os
import signal
import time
from collections.abc import Callable
from typing import Final

_COUNTS: dict[str, int] = {}


class FailpointHit(Exception):
    """Raised by a fail-point with the action `raise`."""


def _parse(text: str) -> dict[str, tuple[int, str]]:
    points = {}
    for entry in filter(None, text.split(",")):
        name, nth, action = entry.split(":", 2)
        points[name] = (int(nth), action)
    return points


_POINTS: Final = _parse(os.environ.get("CRONQ_FAILPOINT", ""))


def _hit(name: str) -> None:
    wanted = _POINTS.get(name)
    if wanted is None:
        return
    _COUNTS[name] = _COUNTS.get(name, 0) + 1
    nth, action = wanted
    if _COUNTS[name] != nth:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "raise":
        raise FailpointHit(name)
    elif action.startswith("sleep="):
        time.sleep(int(action.removeprefix("sleep=")) / 1000)
    else:
        raise ValueError(f"CRONQ_FAILPOINT: {action!r} is none of kill, stop, raise, sleep=MILLISECONDS")


failpoint: Callable[[str], None] = _hit if _POINTS else lambda _name: None
