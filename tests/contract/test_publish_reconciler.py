"""A message that nobody claims is sent again after `CRONQ_REPUBLISH_S`, and no sooner."""

from collections.abc import Sequence

import pytest

from cronq.settings import Settings
from cronq.store.agenda import DueJob, mark_published
from cronq.upkeep.publish_reconciler import PublishReconciler

from .rows import Rows


class EmptyQueue:
    """A broker that lost everything."""

    outages = (OSError,)

    def __init__(self) -> None:
        self.sent: list[str] = []

    def queue_of(self, _task: str, queue: str | None) -> str:
        return queue or "celery"

    def depth(self, _queue: str) -> int:
        return 0

    def publish(self, batch: Sequence[DueJob]) -> list[str]:
        self.sent += [due.id for due in batch]
        return [due.id for due in batch]


@pytest.mark.parametrize(("published_ago_s", "again"), [(3, True), (1, False)])
def test_a_lost_message_is_sent_again_when_the_time_is_up(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, published_ago_s: float, again: bool
) -> None:
    monkeypatch.setenv("CRONQ_REPUBLISH_S", "2")
    lost, broker, term = rows.job(), EmptyQueue(), rows.begin_term("me")
    mark_published(rows.database, rows.sent(lost))
    rows.set(lost, published_at=rows.database.now_sql(str(-published_ago_s)))
    PublishReconciler(rows.database, Settings(), broker).run(term)  # type: ignore[arg-type]
    assert broker.sent == ([lost] if again else [])
