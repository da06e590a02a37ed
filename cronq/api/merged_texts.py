"""What stands in the form after somebody else was faster: what was typed, on top of what they saved."""

from collections.abc import Mapping
from typing import Final

from cronq.api.schedule_texts import FIELDS, plain

TOGETHER: Final = ("kind", "when", "tz", "dst")
"""They mean something only together: of who changed one of them all stand."""


def merged(
    typed: Mapping[str, str], base: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of the fields, and the names of those that both have changed, each otherwise.

    base: what the form was filled with; empty if that is not known: then each field counts as typed.
    theirs: what it would be filled with now. A field that was left alone takes the newer value.
    """
    result, both = dict(typed), []
    for names in (TOGETHER, *((name,) for name in FIELDS if name not in TOGETHER)):
        if not _differing(names, typed, base):
            result |= {name: theirs[name] for name in names}
        elif _differing(names, theirs, base):
            both += _differing(names, typed, theirs)
    return result, both


def _differing(names: tuple[str, ...], one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [name for name in names if name not in other or plain(one.get(name, "")) != plain(other[name])]
