"""Which kind of machine is a job for, and where? What jobs need, what workers offer. Pure.

Both come down to queues: `cpu` is any machine of that kind, `cpu.eu-west` one in that region, `cpu.eu-west.a`
one in that zone. A worker consumes its own zone's queue and all those above it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PLACE: Final = "place:"
"""What the key begins with that a job waits for while no place has room: `place:cpu@eu-west`."""
SPILL_AFTER_S: Final = 30.0
LONGEST: Final = 255
"""Characters of `str(needs)`."""
_NAME: Final = r"[A-Za-z0-9_-]+"
_PLACE: Final = rf"{_NAME}(?:\.{_NAME})*"
_TEXT: Final = re.compile(rf"({_NAME})(?:@({_PLACE}(?:,{_PLACE})*))?(?:\+(\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job needs. `str` gives it as `cpu@eu-west.a,eu-west+30`, which `parse` reads."""

    machine: str  #: what kind: cpu, memory, io, or any other name
    places: tuple[str, ...] = ()  #: the most wanted one first; none: anywhere
    spill_after_s: float = SPILL_AFTER_S  #: how long a place may be busy before the next one counts as well

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that its jobs may go to, the most wanted one first."""
        return tuple(f"{self.machine}.{place}" for place in self.places) or (self.machine,)

    def __str__(self) -> str:
        places = f"@{','.join(self.places)}" if self.places else ""
        spill = "" if self.spill_after_s == SPILL_AFTER_S else f"+{self.spill_after_s:g}"
        return f"{self.machine}{places}{spill}"


@lru_cache(maxsize=1000)
def parse(text: str) -> Needs:
    """Read `cpu`, `cpu@eu-west.a,eu-west` or `cpu@eu-west.a,eu-west+30`; raise `ValueError`."""
    match = _TEXT.fullmatch(text)
    if match is None or len(text) > LONGEST:
        raise ValueError(
            f"needs {text[:80]!r} is not like cpu, cpu@eu-west or cpu@eu-west.a,eu-west+30 "
            "(a kind of machine, its places in order, seconds until the next place counts as well)"
        )
    places = tuple(match[2].split(",")) if match[2] else ()
    return Needs(match[1], places, SPILL_AFTER_S if match[3] is None else float(match[3]))


def needs_from(given: str | Mapping[str, object]) -> Needs:
    """Read what `parse` does, or `{"machine": "cpu", "places": ["eu-west"], "spill_after": 30}` (seconds)."""
    if isinstance(given, str):
        return parse(given)
    if unknown := sorted(set(given) - {"machine", "places", "spill_after"}):
        raise ValueError(f"needs have no {unknown[0]!r}; they have machine, places, spill_after")
    places, spill = given.get("places", ()), given.get("spill_after", SPILL_AFTER_S)
    if isinstance(places, str) or not isinstance(places, Iterable):
        raise ValueError("places is a list of names, the most wanted one first")  # noqa: TRY004 - a value
    if isinstance(spill, bool) or not isinstance(spill, int | float) or spill < 0:
        raise ValueError(f"spill_after {spill!r} is not a number of seconds")
    return parse(str(Needs(str(given.get("machine", "")), tuple(map(str, places)), float(spill))))


def offered_queues(machines: Iterable[str], place: str = "") -> list[str]:
    """Return the queues for a worker to consume that offers `machines` at `place`, such as `eu-west.a`.

    Its own zone's, and those of its region and of anywhere.
    """
    parts = place.split(".") if place else []
    return [
        ".".join([parse(machine).machine, *parts[:count]])
        for machine in machines
        for count in range(len(parts), -1, -1)
    ]
