"""What a body returns, as it can be kept: JSON, and small."""

import json
from typing import Any

from cronq.store.values import MOST_LEVELS, is_too_deep
from cronq.telemetry.log import get_logger

MAX_BYTES = 65_536

log = get_logger(__name__)


def storable_json(value: Any, job_id: str, *, what: str) -> Any:  # noqa: ANN401 - whatever the body returned
    """Return `value` if it is JSON, at most 64 KiB and not deep, else None, and say so; `what` names it."""
    why = None
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        why = "it is not JSON; return plain values, or a reference"
    else:
        if len(text) > MAX_BYTES:
            why = f"it is over {MAX_BYTES} bytes; return a reference"
        elif is_too_deep(value, text):
            why = f"its lists and objects are nested more than {MOST_LEVELS} deep; return a reference"
    if why is None:
        return value
    log.warning("job.value_dropped", job=job_id, what=what, why=why)
    return None
