"""What became of a fire time, as a sentence."""

from typing import Final

from cronq.job import State
from cronq.schedule import Reason
from cronq.store.batches import Batch

_LATE: Final = "it could not be sent in time, as no beat led or the broker was away"
REASONS: Final = {
    Reason.OVERLAP: "the previous job was still going on, and the schedule does not overlap itself",
    Reason.MISSED_WINDOW: f"{_LATE}, and its catch-up policy or window leaves out what is so late",
    Reason.COALESCED: f"{_LATE}, and a later fire time ran in its place",
    Reason.PAUSED: "the schedule was paused",
    Reason.EXCLUDED: "a calendar excludes it",
    Reason.DST_GAP: "the clocks went forward over it",
    Reason.DST_REPEAT: "the clocks went back, and it had run the first time",
    Reason.BUFFER_FULL: "too many fire times were waiting for their turn already",
    Reason.LIMIT_REACHED: f"{_LATE}, with so many others that only the newest run (CRONQ_CATCH_UP_LIMIT)",
    Reason.UPSTREAM: "a schedule that it comes after did not complete its job of this fire time",
}
"""What each reason means, as a sentence."""

BEFORE: Final = "the schedule was not declared then, or otherwise than now"
NO_RECORD: Final = "there is no record: it was pruned, or the schedule was changed around then"
HELD: Final = "it waits for the schedules that it comes after"

STATES: Final = {
    State.SCHEDULED: "it is planned",
    State.PENDING: "its message is on the broker; no worker has claimed it yet",
    State.RUNNING: "it is running",
    State.RETRYING: "an attempt failed; the next one has its due time",
    State.COMPLETED: "it ran and completed",
    State.FAILED: "it ran and failed",
    State.TIMED_OUT: "it ran and took too long",
    State.CANCELLED: "it was cancelled",
}
"""What each state of its job means, as a sentence."""


def batch_words(found: Batch) -> str:
    """Return how a fire time's batch stands: `2 of 4 items completed, 1 failed, 1 under way`."""
    completed = found.counts.get(State.COMPLETED, 0)
    counted = [f"{completed} of {found.total} items completed"]
    counted += [f"{found.failed} failed"] if found.failed else []
    stopped = found.counts.get(State.CANCELLED, 0)
    counted += [f"{stopped} cancelled"] if stopped else []
    left = found.total - found.done
    counted += [f"{left} under way"] if left else []
    before = {"finding": "more are being found: ", "paused": "paused: ", "cancelling": "being cancelled: "}
    after = "" if found.error is None else "; not all of its items could be found"
    return before.get(found.status, "") + ", ".join(counted) + after
