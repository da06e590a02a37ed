"""What may be shown? No secret passes: it becomes three stars, which may be taken back for the secret."""

import re
from collections.abc import Mapping
from typing import Any, Final

STARS: Final = "***"
_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|pass$|pwd|secret|token$|(api|access|private)[_-]?key|credential|authorization|cookie",
    re.IGNORECASE,
)
# Up to the last @, as whoever connects reads it; in JSON, not beyond the text's own end.
_URL_PASSWORD = re.compile(r'(://[^\s:/]*:)(?:[^\s/"]+|[^\s/@]+)(?=@)')


def without_secrets(value: Any) -> Any:  # noqa: ANN401
    """Return `value` (anything JSON can hold) with what looks secret replaced by stars."""
    if isinstance(value, str):
        return _URL_PASSWORD.sub(rf"\1{STARS}", value) if "://" in value else value
    if isinstance(value, Mapping):
        return {
            key: STARS if _SECRET_NAME.search(str(key)) and inner is not None else without_secrets(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(inner) for inner in value]
    return value


def with_secrets(given: Any, stored: Any) -> Any:  # noqa: ANN401
    """Return `given`, in which somebody may have changed what `without_secrets(stored)` is, with its secrets.

    Raises ValueError for stars in the place of a secret that `stored` does not have there.
    """
    if isinstance(given, str):
        return _with_password(given, stored)
    if isinstance(given, Mapping):
        known = stored if isinstance(stored, Mapping) else {}
        return {key: _with_secret(key, inner, known.get(key)) for key, inner in given.items()}
    if isinstance(given, list):
        before = _before(given, stored if isinstance(stored, list) else [])
        return [with_secrets(inner, was) for inner, was in zip(given, before, strict=True)]
    return given


def _with_password(given: str, stored: object) -> str:
    if isinstance(stored, str) and given == without_secrets(stored):
        return stored
    if "://" in given and f":{STARS}@" in given:
        raise ValueError(f"{given} has {STARS} for a password that is not stored with this address: write it")
    return given


def _with_secret(key: object, given: Any, stored: Any) -> Any:  # noqa: ANN401
    if given != STARS or not _SECRET_NAME.search(str(key)):
        return with_secrets(given, stored)
    if stored is None:
        raise ValueError(f"{key} has {STARS} for a secret that is not stored there: write it")
    return stored


def _before(given: list[Any], stored: list[Any]) -> list[Any]:
    """Return what each of `given` was: an equal one, or the one in its place if no other was changed."""
    shown = without_secrets(stored)
    if len(given) == len(stored):
        changed = [place for place, each in enumerate(given) if each != shown[place]]
        if len(changed) <= 1:
            return stored
    found = []
    for each in given:
        those = [old for old, seen in zip(stored, shown, strict=True) if seen == each]
        found.append(those[0] if those and all(old == those[0] for old in those) else None)
    return found
