"""Where does a job with needs go now? Its places, the workers there, and how many messages wait. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from cronq.beat.buckets import Bucket
from cronq.limits import Limit
from cronq.needs import PLACE, parse

NO_LIMIT: Final = Limit(kind="place")


@dataclass(slots=True)
class Spots:
    """The queues of all places, as they were at the last look."""

    slots: Mapping[str, int] | None = None  #: jobs at a time that live workers of a queue do; None: not known
    depths: dict[str, int] = field(default_factory=dict)  #: messages on the broker, and sent since

    def serves(self, queue: str) -> bool:
        """Tell whether a live worker consumes `queue`, as far as is known."""
        return self.slots is None or self.slots.get(queue, 0) > 0

    def has_room(self, queue: str, *, background: bool) -> bool:
        """Tell whether `queue` can take a message: one may wait for each job at a time there."""
        if queue not in self.depths:
            return False  # until somebody has looked, nothing is sent
        if self.slots is None:
            return True
        slots = self.slots.get(queue, 0)
        return self.depths[queue] < (ceil(slots / 2) if background else slots)


@dataclass(slots=True, kw_only=True)
class Place(Bucket):
    """Where jobs with the same needs wait for a place that has room."""

    spots: Spots
    busy_since: float | None = None  #: since when somebody waits here without interruption

    @property
    def needs(self) -> str:
        """What its jobs need, as text."""
        return self.key.removeprefix(PLACE)

    @property
    def queues(self) -> tuple[str, ...]:
        """Where they may go, the most wanted first."""
        return parse(self.needs).queues

    def stops(self, now: float, *, background: bool) -> bool:
        """Tell whether a job has to wait here."""
        return self.pick(now, background=background) is None

    def pick(self, now: float, *, background: bool) -> str | None:
        """Return the queue for the next job; None: it waits.

        A place without workers is passed over. One that is merely busy is waited for, until somebody has
        waited for so long that the others count as well.
        """
        needs = parse(self.needs)
        served = [queue for queue in needs.queues if self.spots.serves(queue)]
        spills = self.busy_since is not None and now - self.busy_since >= needs.spill_after_s
        within_reach = served if spills else served[:1]
        return next((q for q in within_reach if self.spots.has_room(q, background=background)), None)

    def send(self, now: float, *, background: bool) -> str:
        """Return where a job goes that nothing stops, and count it there."""
        queue = self.pick(now, background=background)
        assert queue is not None
        self.spots.depths[queue] += 1
        return queue

    def note_waiting(self, now: float) -> None:
        """Take in whether anybody waits, when all that could go has gone."""
        if not self.turns:
            self.busy_since = None
        elif self.busy_since is None:
            self.busy_since = now
