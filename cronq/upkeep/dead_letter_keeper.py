"""Makes the broker's dead-letter queue say what SQL says, and sends back messages that are no jobs.

It runs in a thread of its own: the queue may be long and the broker slow, and the leader's loop must not
wait. A leader that dies half-way leaves a copy twice; SQL has each letter once.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from cronq.delivery.dead_letter_queue import DeadLetterQueue, Letter, Unroutable
from cronq.errors import first_line
from cronq.retry import Kind
from cronq.store.agenda import read_jobs
from cronq.store.database import Database
from cronq.store.dead import DeadFilter, list_dead
from cronq.store.dead_copies import mark_job, mark_message, open_messages, outdated_jobs, take_back_wish
from cronq.store.dead_messages import (
    DeadMessage,
    body_of,
    drop_oldest_messages,
    record_message,
    remove_message,
)
from cronq.telemetry.log import get_logger

PERIOD_S: Final = 1.0
BATCH: Final = 100
ERROR_CHARS: Final = 500
LOOKS: Final = 5
"""How often a copy that is not in the queue is looked for: somebody may hold it, or have taken it away."""

log = get_logger(__name__)


class DeadLetterKeeper:
    """Looks once a second, while this beat leads."""

    def __init__(
        self,
        database: Database,
        queue: DeadLetterQueue,
        *,
        leads: Callable[[], bool],
        read_malformed: Callable[[], Mapping[str, str] | None],
        drop_malformed: Callable[[], None],
    ) -> None:
        """read_malformed, drop_malformed: the oldest of what Redis workers put aside."""
        self._database, self._queue, self._leads = database, queue, leads
        self._read_malformed, self._drop_malformed = read_malformed, drop_malformed
        self._looked_for: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cronq-dead-letters", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; the thread ends by itself."""
        self._stopping.set()

    def look(self) -> None:
        """Do once what is to be done."""
        self._take_malformed()
        new, obsolete = outdated_jobs(self._database, limit=BATCH)
        self._copy_jobs(new)
        for job_id in self._removed(obsolete):
            mark_job(self._database, job_id, copied=False)
        for row in open_messages(self._database, limit=BATCH):
            self._see_to(row)

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            if self._leads():
                try:
                    self.look()
                except Exception as error:  # noqa: BLE001 - whatever it is, the next look comes soon
                    self._queue.close()
                    log.warning_once(
                        "dead_letters.not_copied", error=first_line(error),
                        consequence="SQL has them; the queue gets them later",
                    )  # fmt: skip

    def _removed(self, ids: list[str]) -> list[str]:
        """Take copies off the queue; return those that are gone, or were looked for long enough."""
        there = self._queue.remove(ids)
        self._looked_for = Counter({dead_id: self._looked_for[dead_id] + 1 for dead_id in ids})
        return [dead_id for dead_id in ids if dead_id in there or self._looked_for[dead_id] >= LOOKS]

    def _take_malformed(self) -> None:
        for _ in range(BATCH):
            entry = self._read_malformed()
            if entry is None:
                return
            body = entry["text"].encode("utf-8", "surrogatepass")
            found = DeadMessage(
                kind=Kind.MALFORMED, error=entry["error"], body=body, worker=entry.get("worker")
            )
            record_message(self._database, found)
            drop_oldest_messages(self._database)
            self._drop_malformed()

    def _copy_jobs(self, ids: list[str]) -> None:
        if not ids:
            return
        letters = {each.id: each for each in list_dead(self._database, DeadFilter(ids=ids), limit=len(ids))}
        for job in read_jobs(self._database, ids):
            letter = letters.get(job.id)
            if letter is not None:
                facts = {
                    "kind": letter.kind,
                    "error": _last_line(letter.error),
                    "attempts": letter.attempts,
                    "dead_at": letter.dead_at.isoformat(),
                }
                self._put(self._queue.letter_of(job, facts))
                mark_job(self._database, job.id, copied=True)

    def _see_to(self, row: Mapping[Any, Any]) -> None:
        """Do for one message what is to be done."""
        letter = _letter(row)
        if row["wish"] is None:
            self._put(letter)
            mark_message(self._database, row["id"])
            drop_oldest_messages(self._database)
            return
        if row["wish"] == "retry":
            try:
                self._queue.send_back(letter, row["exchange"], row["routing_key"])
            except Unroutable as error:
                log.error(  # noqa: TRY400 - the sentence says it
                    "dead_letter.not_sent_back", dead_letter=row["id"], error=str(error),
                    consequence="it stays a dead letter",
                )  # fmt: skip
                take_back_wish(self._database, row["id"], f"{row['error']}; not sent back: {error}")
                return
        if row["copied_at"] is not None:
            self._queue.remove([row["id"]])
        remove_message(self._database, row["id"])
        log.info("dead_letter.gone", dead_letter=row["id"], wish=row["wish"])

    def _put(self, letter: Letter) -> None:
        try:
            self._queue.put(letter)
        except self._queue.outages:
            raise
        except Exception as error:  # noqa: BLE001 - one that cannot be written must not hold up the others
            self._queue.close()
            log.warning(
                "dead_letter.not_copied",
                dead_letter=letter.id,
                error=first_line(error),
                consequence="SQL has it",
            )


def _letter(row: Mapping[Any, Any]) -> Letter:
    return Letter(
        id=row["id"],
        body=body_of(row),
        content_type=row["content_type"],
        content_encoding=row["content_encoding"],
        headers=row["headers"],
        priority=row["priority"],
        facts={
            "kind": row["kind"],
            "error": _last_line(row["error"]),
            "worker": row["worker"],
            "dead_at": row["dead_at"].isoformat(),
        },
    )


def _last_line(error: str | None) -> str:
    return (error or "").strip().rpartition("\n")[2][:ERROR_CHARS]
