"""Clean-up and health checks as deployed, each with a worker killed in the middle."""

import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cronq.job import State
from cronq.store.database import Database
from cronq.store.jobs import JobFilter, get_job, list_jobs
from tasks.health import open_health
from tasks.housekeeping import open_shop
from tests.support.processes import Processes, wait_for
from tests.support.receiver import receiving

EXPIRED, LIVE = 300_000, 50
BOTH = pytest.mark.parametrize(
    ("broker_url", "database_url"), [("redis", "sqlite"), ("rabbitmq", "postgresql")], indirect=True
)


@pytest.fixture
def env(deployment_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    paths = {name: str(tmp_path / f"{name}.sqlite") for name in ("SHOP_PATH", "HEALTH_PATH")}
    for name, path in paths.items():
        monkeypatch.setenv(name, path)
    return {**deployment_env, **paths}


def start(processes: Processes, env: dict[str, str]) -> Database:
    upgraded = processes.run("upgrade", sys.executable, "-m", "cronq", "db", "upgrade", env=env)
    assert upgraded[0] == 0, upgraded[1]
    processes.beat("beat", "beat.app", "-S", "cronq", env=env)
    return Database(env["CRONQ_DATABASE_URL"])


def sessions() -> int:
    with closing(open_shop()) as shop:
        return int(shop.execute("SELECT count(*) FROM session").fetchone()[0])


@pytest.mark.timeout(180)
@BOTH
def test_a_clean_up_whose_worker_is_killed_goes_on_where_it_was_and_spares_the_living(
    processes: Processes, env: dict[str, str]
) -> None:
    now = datetime.now(UTC)
    ends = {"old": (EXPIRED, now - timedelta(days=1)), "live": (LIVE, now + timedelta(days=1))}
    with closing(open_shop()) as shop:
        shop.execute("BEGIN")
        for kind, (count, end) in ends.items():
            rows = ((f"{kind}-{n}", end.isoformat()) for n in range(count))
            shop.executemany("INSERT INTO session VALUES (?, ?)", rows)
        shop.execute("COMMIT")
    database = start(processes, env)
    doomed = processes.worker("doomed", "workers.app", env=env)
    asked = (sys.executable, "-m", "cronq", "schedules", "run", "delete-expired-sessions")
    wait_for(lambda: processes.run("asked", *asked, env=env)[0] == 0, 30, "the leader to know its schedules")
    wait_for(lambda: sessions() < EXPIRED, 60, "the first sessions to go")
    doomed.kill()
    left = sessions()
    assert LIVE < left < EXPIRED + LIVE

    processes.worker("heir", "workers.app", env=env)
    wait_for(lambda: sessions() == LIVE, 90, "the rest to go")
    cleaned = wait_for(
        lambda: list_jobs(
            database, JobFilter(task="tasks.delete_expired_sessions", state=State.COMPLETED), limit=10
        ),
        20,
        "its end",
    )
    assert cleaned[0]["attempts"] == 2
    assert cleaned[0]["result"]["deleted"] <= left - LIVE
    database.dispose()


def looks(where: str = "error IS NOT NULL") -> int:
    with open_health() as health:
        return int(health.execute(f"SELECT count(*) FROM look WHERE {where}").fetchone()[0])


@pytest.mark.timeout(180)
@BOTH
def test_sustained_failure_is_told_once_though_the_worker_is_killed_over_it(
    processes: Processes, env: dict[str, str]
) -> None:
    with receiving() as shop, receiving() as pager:
        env |= {"HEALTH_CHECKS": f"shop={shop.url}", "HEALTH_EVERY": "2s", "ALERT_URL": pager.url}
        database = start(processes, env)
        doomed = processes.worker("doomed", "workers.app", env=env)
        wait_for(lambda: looks("error IS NULL"), 60, "a look at a service that is well")
        shop.status = 503
        wait_for(lambda: looks() >= 2, 30, "failures")
        with shop.holding():
            wait_for(lambda: shop.waiting, 30, "a look that is under way")
            (caught,) = list_jobs(database, JobFilter(state=State.RUNNING), limit=10)
            doomed.kill()
        processes.worker("heir", "workers.app", env=env)
        wait_for(lambda: pager.seen, 60, "somebody to be told")
        wait_for(lambda: looks() >= 6, 60, "the trouble to last")
        shop.status = 200

        def over() -> list[tuple[str, str]]:
            with open_health() as health:
                return health.execute("SELECT since, over_at FROM alert WHERE over_at IS NOT NULL").fetchall()

        ((since, _over),) = wait_for(over, 60, "the alert to be over")
        with open_health() as health:
            first = health.execute("SELECT min(at) FROM look WHERE error IS NOT NULL").fetchone()[0]
        assert since == first
        assert [body["down_since"] for body in pager.bodies()] == [since]
        wait_for(
            lambda: get_job(database, caught["id"])["state"] == State.COMPLETED, 30, "its second attempt"
        )
        assert get_job(database, caught["id"])["attempts"] == 2
        database.dispose()
