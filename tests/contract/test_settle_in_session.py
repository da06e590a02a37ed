"""A body's own SQL work and its job's outcome: both, or neither."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.orm import Session

from cronq.context import current_job
from cronq.coordination.redis_client import open_redis
from cronq.errors import LeaseLost
from cronq.job import Outcome, State
from cronq.progress.board import Board
from cronq.settings import Settings
from cronq.store.attempts import settle_in
from cronq.store.database import Database
from cronq.worker.attempt import Ended, Work, run_attempt
from cronq.worker.desk import StoreDesk

from .rows import Rows, settlement

NO_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture
def engine(database: Database, database_url: str) -> Iterator[Engine]:
    """The user's own engine on the same database, with nothing of cronq about it."""
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE ledger (job VARCHAR(36), amount INTEGER)"))
    yield engine
    engine.dispose()


@pytest.fixture
def run(database: Database, rows: Rows) -> Callable[[Callable[[], Any]], tuple[str, Ended]]:
    """Run a body as one attempt of a new job, at a real desk."""
    client = open_redis(NO_REDIS)
    desk = StoreDesk(database, client, Board(client, prefix="p:"), Settings())

    def attempt(body: Callable[[], Any]) -> tuple[str, Ended]:
        job_id = rows.job()
        work = Work(
            job_id=job_id, task="t", schedule=None, fire_time=None, tenant=None, worker="w",
            default_attempts=1,
        )  # fmt: skip
        return job_id, run_attempt(desk, work, body, lambda _claim: None)

    return attempt


def post(session: Session | Connection, amount: int = 5) -> None:
    job = current_job()
    assert job is not None
    session.execute(text("INSERT INTO ledger VALUES (:job, :amount)"), {"job": job.id, "amount": amount})


def posted(engine: Engine) -> list[tuple[str, int]]:
    with engine.connect() as connection:
        return [(row.job, row.amount) for row in connection.execute(text("SELECT job, amount FROM ledger"))]


def settle_job(session: Session | Connection, result: Any = None) -> None:
    job = current_job()
    assert job is not None
    job.settle(session, result)


def test_both_are_committed_together_and_the_outcome_is_written_once(
    engine: Engine, rows: Rows, run: Any
) -> None:
    def body() -> str:
        with Session(engine) as session, session.begin():
            post(session)
            settle_job(session, {"posted": 5})
        return "what Celery is told"

    job_id, ended = run(body)
    row = rows.row(job_id)
    assert (row["state"], row["result"]) == (State.COMPLETED, {"posted": 5})
    assert row["progress"]["progress"] == 100
    assert rows.attempts(job_id) == [(1, "COMPLETED", None)]
    assert posted(engine) == [(job_id, 5)]
    assert (ended.settlement.state, ended.result) == (State.COMPLETED, "what Celery is told")


def test_a_plain_connection_does_as_well(engine: Engine, rows: Rows, run: Any) -> None:
    def body() -> None:
        with engine.begin() as connection:
            post(connection)
            settle_job(connection)

    job_id, _ended = run(body)
    assert rows.state(job_id) is State.COMPLETED
    assert posted(engine) == [(job_id, 5)]


def test_a_body_that_fails_before_its_commit_leaves_neither(engine: Engine, rows: Rows, run: Any) -> None:
    def body() -> None:
        with Session(engine) as session, session.begin():
            post(session)
            settle_job(session)
            raise ValueError("the account is closed")

    job_id, ended = run(body)
    assert posted(engine) == []
    assert rows.state(job_id) is State.FAILED
    assert "the account is closed" in rows.row(job_id)["error"]
    assert isinstance(ended.error, ValueError)


def test_a_body_may_roll_back_and_do_both_again(engine: Engine, rows: Rows, run: Any) -> None:
    def body() -> None:
        for amount, commits in ((1, False), (2, True)):
            with Session(engine) as session:
                post(session, amount)
                settle_job(session, amount)
                if commits:
                    session.commit()

    job_id, _ended = run(body)
    assert posted(engine) == [(job_id, 2)]
    assert (rows.state(job_id), rows.row(job_id)["result"]) == (State.COMPLETED, 2)


def test_an_error_after_the_commit_does_not_undo_the_outcome(engine: Engine, rows: Rows, run: Any) -> None:
    def body() -> None:
        with Session(engine) as session, session.begin():
            post(session)
            settle_job(session)
        raise ValueError("too late")

    job_id, ended = run(body)
    assert rows.state(job_id) is State.COMPLETED
    assert rows.attempts(job_id) == [(1, "COMPLETED", None)]
    assert ended.error is None


def test_a_body_that_forgets_to_commit_fails_and_says_so(engine: Engine, rows: Rows, run: Any) -> None:
    kept: list[Session] = []

    def body() -> None:
        kept.append(Session(engine))
        post(kept[0])
        settle_job(kept[0])

    job_id, _ended = run(body)
    assert posted(engine) == []
    assert rows.state(job_id) is State.FAILED
    assert "did not commit" in rows.row(job_id)["error"]


def test_a_worker_that_lost_its_lease_rolls_its_own_work_back(engine: Engine, rows: Rows, run: Any) -> None:
    def body() -> None:
        job = current_job()
        assert job is not None
        rows.set(job.id, lease_token="'somebody else'")
        with Session(engine) as session, session.begin():
            post(session)
            settle_job(session)

    job_id, ended = run(body)
    assert posted(engine) == []
    assert ended.settlement is None
    assert rows.row(job_id)["lease_token"] == "somebody else"
    assert rows.attempts(job_id) == []


def test_the_statement_alone_is_guarded_by_the_token(engine: Engine, database: Database, rows: Rows) -> None:
    job_id = rows.job()
    assert rows.claim(job_id, "mine") is not None
    with engine.begin() as connection:
        assert not settle_in(database, connection, settlement(job_id, "yours"))
        assert settle_in(database, connection, settlement(job_id, "mine"))
        assert not settle_in(database, connection, settlement(job_id, "mine", outcome=Outcome.FAILED))
    assert rows.state(job_id) is State.COMPLETED


def test_settling_outside_the_job_it_is_about_raises(engine: Engine, rows: Rows, run: Any) -> None:
    contexts: list[Any] = []
    job_id, _ended = run(lambda: contexts.append(current_job()))
    with pytest.raises(LeaseLost), Session(engine) as session, session.begin():
        contexts[0].settle(session)
    assert rows.state(job_id) is State.COMPLETED
