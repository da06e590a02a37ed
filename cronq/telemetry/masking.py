"""What may be shown? No secret passes: it becomes three stars."""

import re
from collections.abc import Mapping
from typing import Any, Final

STARS: Final = "***"
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|secret|token$|api[_-]?key|private[_-]?key|credential|authorization|cookie",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(\w+://[^\s:/@]*:)[^\s/@]+(?=@)")


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
