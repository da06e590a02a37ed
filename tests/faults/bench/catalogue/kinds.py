"""The list of faults, and on which installations each makes sense."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.bench.injector import Injector


@dataclass(frozen=True)
class Kind:
    """One fault. `broker`, `database`: the only one that it can be done to; None: any."""

    name: str
    do: Callable[[Injector], None]
    broker: str | None = None
    database: str | None = None

    def fits(self, broker: str, database: str) -> bool:
        return self.broker in (None, broker) and self.database in (None, database)


KINDS: dict[str, Kind] = {}


def kind(
    name: str, *, broker: str | None = None, database: str | None = None
) -> Callable[[Callable[[Injector], None]], Callable[[Injector], None]]:
    """Add the decorated function to the list."""

    def add(do: Callable[[Injector], None]) -> Callable[[Injector], None]:
        assert name not in KINDS, name
        KINDS[name] = Kind(name, do, broker, database)
        return do

    return add
