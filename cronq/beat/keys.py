"""Which limited keys are there, what is known of each, and when may one of them let a job out? Pure."""

import heapq
from collections.abc import Callable, Mapping

from cronq.beat.buckets import Bucket
from cronq.beat.places import NO_LIMIT, Place, Spots
from cronq.beat.turns import Turns, all_tiers
from cronq.limits import Limit, Limits
from cronq.needs import PLACE


class Keys:
    """The buckets of one leader, and which of them have to be looked at.

    recent: how many starts of a rate-limited key there were within the bucket's `refill_s`.
    """

    def __init__(self, limits: Limits, now: float, recent: Callable[[Bucket], int]) -> None:
        self._now, self._recent = now, recent
        self._tiers = all_tiers(limits.tiers)
        self._buckets: dict[str, Bucket] = {}
        self.open = Bucket("", Limit(kind=""), Turns(self._tiers))  #: for what is not limited any more
        self.awake: dict[str, Bucket] = {}  #: those that somebody waits at and that may let one out
        self._alarms: list[tuple[float, str]] = []
        self._alarmed: set[str] = set()
        self._deep: list[Bucket] = []
        self._places: list[Place] = []
        self._spots = Spots()
        self._allowed: Mapping[str, int | None] = {}

    def bucket(self, key: str, limit: Limit) -> Bucket:
        """Return the bucket of `key`, a new one if need be."""
        if key not in self._buckets:
            bucket = self._buckets[key] = Bucket(key, limit, Turns(self._tiers))
            bucket.allowed = self._allowed.get(key)
            bucket.start(self._now, self._recent(bucket) if limit.rate is not None else 0)
            if limit.backlog is not None:
                self._deep.append(bucket)
        return self._buckets[key]

    def place(self, needs: str) -> Place:
        """Return where jobs with `needs` wait."""
        place = self._buckets.get(PLACE + needs)
        if not isinstance(place, Place):
            place = Place(key=PLACE + needs, limit=NO_LIMIT, turns=Turns(self._tiers), spots=self._spots)
            self._buckets[place.key] = place
            self._places.append(place)
        return place

    def keep(self, needed: set[str]) -> None:
        """Forget the keys that are not `needed`, unless they would be missed."""
        self._buckets = {
            key: bucket
            for key, bucket in self._buckets.items()
            # A rate has to remember what went out a moment ago.
            if key in needed or bucket.opens_in(self._now) is not None or bucket.limit.backlog is not None
        }

    def uncount(self) -> None:
        """Forget what goes on."""
        for bucket in self._buckets.values():
            bucket.in_flight = bucket.background = bucket.unclaimed = 0

    # -- which to look at ----------------------------------------------------------------------------------

    @property
    def wanted(self) -> bool:
        """Whether anybody waits at one of them."""
        return bool(self.open.turns) or any(bucket.turns for bucket in self._buckets.values())

    def wake(self, bucket: Bucket) -> None:
        """Have `bucket` looked at, if somebody waits there."""
        if bucket.turns:
            self.awake[bucket.key] = bucket

    def wake_all(self) -> None:
        """Have every bucket looked at."""
        for bucket in self._buckets.values():
            self.wake(bucket)

    def next_awake(self) -> Bucket:
        """Take out one that has to be looked at."""
        return self.awake.pop(next(iter(self.awake)))

    def set_alarm(self, bucket: Bucket, now: float) -> None:
        """Have `bucket` looked at when its rate lets the next job out."""
        wait = bucket.opens_in(now) if bucket.turns and bucket.key not in self._alarmed else None
        if wait is not None:
            self._alarmed.add(bucket.key)
            heapq.heappush(self._alarms, (now + wait, bucket.key))

    def wake_by(self, now: float) -> None:
        """Have those looked at whose alarm is due."""
        self._now = now
        while self._alarms and self._alarms[0][0] <= now:
            key = heapq.heappop(self._alarms)[1]
            self._alarmed.discard(key)
            if (bucket := self._buckets.get(key)) is not None:
                self.wake(bucket)

    def opens_in(self, now: float) -> float | None:
        """Return the seconds until a rate lets the next job out."""
        return max(0.0, self._alarms[0][0] - now) if self._alarms else None

    def note_waiting(self, now: float) -> None:
        """Take in who waits for a place, when all that could go has gone."""
        for place in self._places:
            place.note_waiting(now)

    # -- what SQL and the broker say -----------------------------------------------------------------------

    def break_off(self, allowed: Mapping[str, int | None]) -> None:
        """Take in how many jobs may go on for each dependency whose breaker is not closed."""
        self._allowed = allowed
        for key, bucket in self._buckets.items():
            bucket.allowed = allowed.get(key)
            if bucket.limit.break_after is not None:
                self.wake(bucket)

    def deep(self) -> list[str]:
        """Return the queues whose depth has to be looked at."""
        queues = [bucket.key.partition(":")[2] for bucket in self._deep if bucket.turns]
        return list(
            dict.fromkeys(queues + [q for place in self._places if place.turns for q in place.queues])
        )

    def sounded(self, queue: str, depth: int) -> None:
        """Take in how many messages wait in `queue`."""
        if (bucket := self._buckets.get(f"queue:{queue}")) is not None:
            bucket.depth = depth
            self.wake(bucket)
        self._spots.depths[queue] = depth
        self._wake_places()

    @property
    def seeks_places(self) -> bool:
        """Whether a job waits for a place."""
        return any(place.turns for place in self._places)

    def offered(self, slots: Mapping[str, int] | None) -> None:
        """Take in how many jobs at a time live workers of each queue do; None: it is not known."""
        self._spots.slots = slots
        self._wake_places()

    def _wake_places(self) -> None:
        for place in self._places:
            self.wake(place)
