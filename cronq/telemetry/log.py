"""Log lines: one event, its facts, as text or JSON, without secrets.

Event names (`leadership.acquired`, `job.settled`, …) are stable; see docs/operations/log-events.md.
"""

import json
import logging
import time
from typing import Any

from cronq.telemetry.masking import without_secrets

REPEAT_AFTER_S = 10.0


def get_logger(name: str) -> "EventLogger":
    """Return the logger of one module."""
    return EventLogger(logging.getLogger(name))


class EventLogger:
    """Writes events with their facts; a thin layer over `logging`, so that every handler works."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last: dict[tuple[str, str], float] = {}

    def debug(self, event: str, **facts: object) -> None:
        """Write what only somebody hunting a fault wants to know."""
        self._write(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Write what an operator wants to see on a good day."""
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Write what went wrong and heals by itself."""
        self._write(logging.WARNING, event, facts)

    def error(self, event: str, **facts: object) -> None:
        """Write what somebody has to look at."""
        self._write(logging.ERROR, event, facts)

    def exception(self, event: str, **facts: object) -> None:
        """Write an error with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, event, facts, exc_info=True)

    def warning_once(self, event: str, **facts: object) -> None:
        """Write a warning at most once in ten seconds, for what repeats with every step."""
        key = (event, str(facts.get("consequence", "")))
        now = time.monotonic()
        if now - self._last.get(key, -REPEAT_AFTER_S) >= REPEAT_AFTER_S:
            self._last[key] = now
            self._write(logging.WARNING, event, facts)

    def _write(self, level: int, event: str, facts: dict[str, Any], *, exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            words = " ".join(f"{name}={_shown(value)}" for name, value in facts.items() if value is not None)
            self._logger.log(
                level, "%s %s", event, words, exc_info=exc_info, extra={"cronq": {"event": event, **facts}}
            )


def _shown(value: object) -> str:
    text = without_secrets(str(value))
    return json.dumps(text) if any(c in text for c in ' "\n\r') else text


class Masking(logging.Formatter):
    """Another formatter's lines, without the passwords that addresses carry: in a traceback, for one."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return str(without_secrets(self._inner.format(record)))


class JsonFormatter(logging.Formatter):
    """One JSON object a line; the facts of cronq's events as fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, Any] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
        }
        facts = getattr(record, "cronq", None)
        entry.update(facts if facts is not None else {"event": record.getMessage()})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return str(without_secrets(json.dumps(entry, default=str)))
