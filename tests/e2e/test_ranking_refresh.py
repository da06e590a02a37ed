"""The feed's model is trained on schedule: its trainer is killed, and what was missed is made up for."""

import json
import os
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import RowMapping

from cronq.job import State
from cronq.store.database import Database
from cronq.store.jobs import JobFilter, get_job, list_jobs
from tasks import visitors
from tasks.ranking import open_feed
from tests.support.processes import Processes, wait_for
from tests.support.server import free_port

MINUTES = 200  # of visitors: the model sees their last 20,000 impressions, and needs seconds for them


@pytest.fixture
def env(deployment_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("FEED_PATH", str(tmp_path / "feed.sqlite"))
    return {
        **deployment_env,
        "FEED_PATH": os.environ["FEED_PATH"],
        "CRONQ_HORIZON_S": "5",  # what a dead beat has planned is not missed, only late
        "MODEL_PATH": str(tmp_path / "models" / "feed-ranking.json"),
        "RANKING_EVERY": "20s",
        "DEPLOYMENT_API_PORT": str(free_port()),
    }


def ask(env: dict[str, str], path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{env['DEPLOYMENT_API_PORT']}{path}") as answer:
        return json.load(answer)


def version(env: dict[str, str]) -> datetime:
    return datetime.fromisoformat(ask(env, "/api/feed/model")["version"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("broker_url", "database_url"), [("redis", "sqlite"), ("rabbitmq", "postgresql")], indirect=True
)
def test_a_killed_trainer_leaves_the_served_model_and_a_missed_refresh_is_made_up_for(
    processes: Processes, env: dict[str, str]
) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    for minute in range(MINUTES):
        visitors.look_at_posts(now - timedelta(minutes=MINUTES - minute))
    assert processes.cronq("upgrade", "db", "upgrade", env=env).wait(60) == 0
    database = Database(env["CRONQ_DATABASE_URL"])

    def refreshes(state: State | None = None) -> list[RowMapping]:
        return list_jobs(database, JobFilter(schedule="refresh-ranking", state=state), limit=100)

    processes.python("api", "-m", "tasks.api", env=env)
    beat = processes.beat("beat", "beat.app", "-S", "cronq", env=env)
    doomed = processes.worker("doomed", "workers.app", env=env)
    first = wait_for(lambda: version(env), 90, "a first model", ignoring=urllib.error.URLError)

    # Asked of SQL, not of the command line: a training takes less than a second.
    running = wait_for(lambda: refreshes(State.RUNNING), 60, "a second training")[0]
    doomed.kill()
    assert version(env) == first, "half a model is served"

    processes.worker("heir", "workers.app", env=env)
    second = wait_for(lambda: (found := version(env)) > first and found, 60, "the heir's model")
    wait_for(lambda: get_job(database, running["id"])["state"] == State.COMPLETED, 20, "it to be settled")
    assert second == running["fire_time"]
    assert get_job(database, running["id"])["attempts"] == 2

    beat.kill()
    wait_for(
        lambda: datetime.now(UTC) - version(env) > timedelta(seconds=45), 90, "two refreshes to be missed"
    )
    processes.beat("late beat", "beat.app", "-S", "cronq", env=env)
    wait_for(lambda: datetime.now(UTC) - version(env) < timedelta(seconds=25), 60, "a late model")
    with open_feed() as feed:
        seen = feed.execute("SELECT count(*) FROM impression").fetchone()[0]
    assert ask(env, "/api/feed/model")["impressions"] == seen == 100 * MINUTES
    assert {row["reason"] for row in refreshes(State.SKIPPED)} == {"coalesced"}
    database.dispose()
