"""The leader's agenda: what is due next, in order, each once."""

import random
from datetime import UTC, datetime, timedelta

from cronq.beat.agenda import Agenda
from cronq.job import Trigger
from cronq.store.agenda import DueJob

START = datetime(2026, 11, 1, tzinfo=UTC)


def job(name: str, second: float, *, schedule: str | None = None, message: object = None) -> DueJob:
    return DueJob(
        id=name,
        task="t",
        args=[],
        kwargs={},
        due_at=START + timedelta(seconds=second),
        trigger=Trigger.SCHEDULE,
        schedule_id=schedule,
        message=message,
    )


def ids(jobs: list[DueJob]) -> list[str]:
    return [each.id for each in jobs]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def test_what_is_due_comes_out_earliest_first_and_what_is_not_stays() -> None:
    agenda = Agenda()
    agenda.add([job("late", 3), job("soon", 1), job("now", 2)])
    assert ids(agenda.pop_due(at(2), 10)) == ["soon", "now"]
    assert ids(agenda.pop_due(at(2.999), 10)) == []
    assert ids(agenda.pop_due(at(3), 10)) == ["late"]
    assert agenda.next_due() is None


def test_jobs_of_one_instant_come_out_in_the_order_they_were_added() -> None:
    agenda = Agenda()
    names = [f"job-{number}" for number in range(50)]
    agenda.add(job(name, 1) for name in names)
    assert ids(agenda.pop_due(at(1), 100)) == names


def test_a_batch_is_no_larger_than_asked_for() -> None:
    agenda = Agenda()
    agenda.add(job(str(number), number) for number in range(10))
    assert ids(agenda.pop_due(at(100), 4)) == ["0", "1", "2", "3"]
    assert len(agenda) == 6


def test_a_job_that_is_added_again_replaces_its_earlier_self() -> None:
    agenda = Agenda()
    agenda.add([job("a", 1)])
    agenda.add([job("a", 5)])
    assert agenda.next_due() == at(5)
    assert ids(agenda.pop_due(at(1), 10)) == []
    assert ids(agenda.pop_due(at(5), 10)) == ["a"]
    assert ids(agenda.pop_due(at(9), 10)) == []


def test_a_job_that_comes_back_at_the_same_instant_comes_out_once() -> None:
    agenda = Agenda()
    agenda.add([job("a", 1)])
    agenda.add(agenda.pop_due(at(1), 10))
    agenda.add([job("a", 1)])
    assert ids(agenda.pop_due(at(1), 10)) == ["a"]
    assert agenda.next_due() is None


def test_an_edited_schedule_loses_its_jobs_and_no_others() -> None:
    agenda = Agenda()
    agenda.add([job("a1", 1, schedule="a"), job("b1", 2, schedule="b"), job("a2", 3, schedule="a")])
    agenda.drop_schedule("a")
    assert list(agenda) == ["b1"]
    assert agenda.next_due() == at(2)
    assert ids(agenda.pop_due(at(9), 10)) == ["b1"]


def test_messages_are_asked_for_once_earliest_first() -> None:
    agenda = Agenda()
    agenda.add([job("d", 60), job("a", 1), job("b", 2, message="written"), job("c", 3)])
    assert ids(agenda.pop_unrendered(1)) == ["a"]
    assert ids(agenda.pop_unrendered(10)) == ["c", "d"]
    assert ids(agenda.pop_unrendered(10)) == []
    agenda.add([job("e", 1)])
    agenda.clear()
    assert ids(agenda.pop_unrendered(10)) == []
    assert len(agenda) == 0


def test_ten_thousand_in_any_order_come_out_sorted() -> None:
    rng = random.Random(4)
    agenda = Agenda()
    agenda.add(job(str(number), rng.randrange(500)) for number in range(10_000))
    out: list[DueJob] = []
    while batch := agenda.pop_due(at(500), 500):
        out += batch
    assert len(out) == 10_000
    assert [each.due_at for each in out] == sorted(each.due_at for each in out)
