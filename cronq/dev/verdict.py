"""Was it a good run? Pure: what happened in, sentences out."""

from collections.abc import Mapping, Sequence

GOOD_ENDS = ("COMPLETED",)
BAD_ENDS = ("FAILED", "TIMED_OUT")


def troubles(counts: Mapping[str, int], dead: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return what was wrong with a run; nothing: it was a good one.

    counts: how many jobs of the run stand in each state. dead: (process, exit code) that ended by themselves.
    """
    found = [f"the process {name} ended by itself (exit code {code})" for name, code in dead]
    found += [f"{counts[state]} job(s) ended {state}" for state in BAD_ENDS if counts.get(state)]
    if not any(counts.get(state) for state in (*GOOD_ENDS, *BAD_ENDS)):
        found.append("no job ran to its end")
    return found
