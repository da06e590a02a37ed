"""The load of each queue, as SQL has it."""

import pytest

from cronq.scaling import Load
from cronq.store.agenda import mark_published
from cronq.store.load import load_by_queue
from cronq.store.room import mark_waiting

from .rows import Rows


def test_what_waits_runs_and_ended_lately_is_the_load_of_its_queue(rows: Rows) -> None:
    pending, running, done, old = (rows.job(queue="mail") for _ in range(4))
    mark_published(rows.database, rows.sent(pending))
    for number, job in enumerate((running, done, old)):
        rows.claim(job, f"token-{number}")
    for number, job in ((1, done), (2, old)):
        rows.settle(job, f"token-{number}")
    rows.set(done, started_at=rows.database.now_sql("-10"), finished_at=rows.database.now_sql("-4"))
    rows.set(old, started_at=rows.database.now_sql("-1000"), finished_at=rows.database.now_sql("-999"))
    for_room = rows.job()
    mark_waiting(rows.database, [(for_room, "task:t")])
    rows.job(due_in=100)
    load = load_by_queue(rows.database, window_s=300)
    assert load.pop((None, "t")) == Load(waiting=1)
    mail = load.pop(("mail", "t"))
    assert (mail.waiting, mail.running, mail.ended) == (1, 1, 1)
    assert mail.worked_s == pytest.approx(6, abs=0.1)
    assert load == {}
