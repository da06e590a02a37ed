"""The reference deployment under test: what its processes are told, and what is asked of it."""

import json
import os
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.processes import Process, Processes

NEVER = "0 0 1 1 *"


def environment(broker_url: str, redis_url: str, database_url: str) -> dict[str, str]:
    """What all processes of one deployment are told: quick to see a death, and without the daily reports."""
    return {
        **os.environ,
        "CRONQ_BROKER_URL": broker_url,
        "CRONQ_REDIS_URL": redis_url,
        "CRONQ_DATABASE_URL": database_url,
        "CRONQ_LOCK_S": "1",
        "CRONQ_LEASE_S": "3",
        "CRONQ_REPUBLISH_S": "3",
        "REPORTS_AT": NEVER,
    }


@dataclass
class Deployment:
    """One that reports at one fire time."""

    processes: Processes
    env: dict[str, str]
    at: Path
    fire_time: datetime
    port: int

    @property
    def fire(self) -> str:
        """The fire time, as cronq writes it."""
        return self.fire_time.isoformat().replace("+00:00", "Z")

    def ask(self, *words: str) -> dict[str, Any]:
        code, said = self.processes.run("asked", sys.executable, "-m", "cronq", *words, env=self.env)
        assert code == 0, said
        found: dict[str, Any] = json.loads(said[said.index("{") :])
        return found

    def leader_pid(self) -> int | None:
        code, said = self.processes.run(
            "leader", sys.executable, "-m", "cronq", "leader", "--json", env=self.env
        )
        return json.loads(said[said.index("{") :])["pid"] if code == 0 else None

    def upgrade(self) -> None:
        assert self.processes.cronq("upgrade", "db", "upgrade", env=self.env).wait(60) == 0

    def beats(self) -> dict[int, Process]:
        """Start two beats; return them by process id."""
        beats = [self.processes.beat(f"beat-{n}", "beat.app", "-S", "cronq", env=self.env) for n in (1, 2)]
        return {beat.pid: beat for beat in beats}
