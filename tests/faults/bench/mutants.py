"""Guarantees of cronq, switched off one at a time in the bench's processes: the checker has to notice."""


def apply(name: str | None) -> None:
    """Switch the guarantee `name` off in this process."""
    if name is not None:
        raise NotImplementedError(name)
