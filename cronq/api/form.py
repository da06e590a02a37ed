"""Says what is wrong with a form on the page, which asks for the same as a request of the API."""

from typing import Final

from pydantic import ValidationError

NO_FIELD: Final = ""
"""Under which what is wrong stands that belongs to no field."""


def complaints(error: ValidationError) -> dict[str, str]:
    """Return what is wrong with each field, in words."""
    found: dict[str, str] = {}
    for each in error.errors():
        field = str(each["loc"][0]) if each["loc"] else each.get("ctx", {}).get("field", NO_FIELD)
        found.setdefault(field, each["msg"].removeprefix("Value error, "))
    return found
