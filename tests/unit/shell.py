"""Runs the command line on a database of its own, where no Redis is."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from click.testing import CliRunner, Result

from cronq.app import Cronq, cronq_of
from cronq.cli.main import cronq
from cronq.store.attempts import bury
from cronq.store.schema import upgrade
from tests.contract.rows import Rows


class Shell:
    """Runs commands, each beginning with `first`."""

    first: tuple[str, ...] = ()

    def __init__(self, app: Celery) -> None:
        self._app = app
        self.parts: Cronq = cronq_of(app)
        self.rows = Rows(self.parts.database)

    def __call__(self, *args: str, answer: str | None = None) -> Result:
        words = [*self.first, *args]
        return CliRunner().invoke(cronq, words, obj=SimpleNamespace(app=self._app), input=answer)

    def json(self, *args: str) -> Any:
        result = self(*args, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def failed(self, kind: str = "network", **facts: Any) -> str:
        job_id = self.rows.job(**facts)
        bury(self.parts.database, job_id, kind=kind, error=f"Traceback\nValueError: {kind}")
        return job_id


@contextmanager
def opened(kind: type[Shell], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give a shell of this kind, with an empty database in `folder`."""
    monkeypatch.setenv("CRONQ_DATABASE_URL", f"sqlite:///{folder / 'cronq.db'}")
    monkeypatch.setenv("CRONQ_REDIS_URL", "redis://127.0.0.1:1/0")  # nobody is there: notices are a luxury
    shell = kind(Celery("shop", set_as_current=False))
    upgrade(shell.parts.database)
    yield shell
    shell.parts.database.dispose()
