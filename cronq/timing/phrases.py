"""Small pieces of English: lists, ordinals, and what a bit set holds."""

from collections.abc import Sequence
from itertools import pairwise


def numbers(mask: int) -> list[int]:
    """Return the numbers of the set bits, smallest first."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def series(words: Sequence[str], last: str = "and") -> str:
    """Return "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def ordinal(number: int) -> str:
    """Return "1st", "22nd", "13th"."""
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")  # noqa: PLR2004
    return f"{number}{ending}"


def stepped(values: Sequence[int]) -> int:
    """Return the constant step between `values`, 0 when there is none or it is 1."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(steps) == 1 and steps != {1} else 0


def runs(values: Sequence[int], names: Sequence[str]) -> list[str]:
    """Return `values` by name, three or more in a row as "first to last"."""
    found: list[list[int]] = []
    for value in values:
        if found and value == found[-1][-1] + 1:
            found[-1].append(value)
        else:
            found.append([value])
    said: list[str] = []
    for run in found:
        if len(run) > 2:  # noqa: PLR2004 - two are said one by one
            said.append(f"{names[run[0]]} to {names[run[-1]]}")
        else:
            said += [names[each] for each in run]
    return said
