"""A whole beat that does not lead: what it takes note of meanwhile."""

from collections.abc import Iterator

import pytest
from celery import Celery
from sqlalchemy.exc import OperationalError

from cronq.app import Cronq
from cronq.job import State
from cronq.settings import Settings
from cronq.store import database as module
from cronq.store.database import Database
from cronq.store.schema import upgrade
from cronq.store.terms import begin_term, hold_term
from cronq.upkeep.job_rescuer import JobRescuer

from .rows import Rows


@pytest.fixture
def cronq(database_url: str, redis_url: str) -> Iterator[Cronq]:
    settings = Settings.model_validate({"database_url": database_url, "redis_url": redis_url})
    made = Cronq(Celery("standby", broker=redis_url, set_as_current=False), settings)
    upgrade(made.database)
    yield made
    made.database.dispose()


@pytest.mark.parametrize(("away", "noted"), [(False, 1), (True, 0)])
def test_a_standby_tells_the_rescuer_whenever_sql_answers(
    cronq: Cronq, monkeypatch: pytest.MonkeyPatch, away: bool, noted: int
) -> None:
    seen: list[JobRescuer] = []
    monkeypatch.setattr(JobRescuer, "saw_sql", lambda rescuer: seen.append(rescuer))  # noqa: PLW0108 - bound
    standby = cronq.build_beat()
    if away:

        def refuse(_database: Database) -> None:
            raise OperationalError("", {}, Exception("server closed the connection"))

        monkeypatch.setattr(Database, "clock", refuse)
    assert standby.leadership.current() is None
    standby.loop.step()
    assert len(seen) == noted


def test_a_standby_keeps_nothing_of_the_notices_that_are_for_the_leader(cronq: Cronq) -> None:
    standby = cronq.build_beat()
    for number in range(3):
        standby.loop.notice({"kind": "job", "job_id": str(number)})
    standby.loop.step()
    assert standby.loop.notices.empty()


def test_a_beat_that_has_just_started_takes_over_nothing_that_may_yet_be_renewed(cronq: Cronq) -> None:
    rows = Rows(cronq.database)
    job_id = rows.job()
    rows.claim(job_id)
    rows.expire(job_id)  # as after an outage: its worker lives, and could not renew
    (rescuer,) = [each for each in cronq.build_beat().loop.upkeep if each.name == "job_rescuer"]
    rescuer.run(rows.begin_term("the new one"))
    assert rows.state(job_id) is State.RUNNING


def test_a_standby_loses_soon_to_a_leader_in_the_middle_of_a_transaction(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("SQLite has one lock for all rows")
    monkeypatch.setitem(module.SESSION, "lock_timeout", "0")  # that of the sessions is not what ends the wait
    database = Database(database_url)
    upgrade(database)
    term = begin_term(database, shard=0, holder="leader", host="h", pid=1)
    with database.begin() as connection:
        hold_term(connection, term)
        with pytest.raises(OperationalError, match="lock timeout"):
            begin_term(database, shard=0, holder="standby", host="h", pid=2)
    assert begin_term(database, shard=0, holder="standby", host="h", pid=2).term == term.term + 1
    database.dispose()
