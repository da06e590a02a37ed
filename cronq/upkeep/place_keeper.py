"""Takes jobs back from a place whose workers are gone, so that they go to another one of theirs."""

from collections.abc import Callable, Mapping

from cronq.needs import parse
from cronq.store.database import Database
from cronq.store.room import count_placed, take_back_placed
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

log = get_logger(__name__)


class PlaceKeeper:
    """Looks at where jobs with needs wait on the broker, and who is there."""

    def __init__(self, database: Database, offers: Callable[[], Mapping[str, int] | None]) -> None:
        self._database, self._offers = database, offers

    def run(self, _term: Term) -> None:
        """Look once. Without a word of who works nothing is taken back."""
        placed = count_placed(self._database)
        slots = self._offers() if placed else None
        for needs, queue in placed if slots else ():
            elsewhere = [each for each in parse(needs).queues if slots and slots.get(each)]
            if elsewhere and queue not in elsewhere:
                # A message that is out already finds its job taken, unless it is the first.
                taken = take_back_placed(self._database, needs, queue)
                log.warning(
                    "place.left", queue=queue, jobs=taken, consequence=f"they go to {', '.join(elsewhere)}"
                )
