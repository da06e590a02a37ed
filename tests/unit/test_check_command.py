"""`cronq check`: all that is wrong with an app, by the settings that its processes go by."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery import Celery
from click.testing import CliRunner, Result

from cronq.cli.main import cronq
from cronq.declaration import declared

APP = """
from celery import Celery
from cronq import every

app = Celery("checked", broker="memory://", set_as_current=False)
app.conf.cronq_database_url = "sqlite:///of-the-app.db"
app.conf.cronq_redis_url = "redis://127.0.0.1:1/7"
app.conf.cronq_lock_s = 7.0
app.conf.beat_schedule = {
    "not-json": {"task": "checked.work", "schedule": 5.0, "args": (object(),)},
    "nobody's": {"task": "checked.nowhere", "schedule": 5.0},
}

@app.task(name="checked.work")
def work(): ...
"""


@pytest.fixture(params=["cronq check -A app", "celery -A app cronq check"])
def check(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    kept, declared[:] = list(declared), []
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("CRONQ_DATABASE_URL", "CRONQ_REDIS_URL", "CRONQ_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*more: str, code: str = APP) -> Result:
        (tmp_path / "checked.py").write_text(code)
        sys.modules.pop("checked", None)
        if "-A app cronq" not in request.param:
            return CliRunner().invoke(cronq, ["check", "-A", "checked", *more])
        found: Celery = __import__("checked").app
        return CliRunner().invoke(cronq, ["check", *more], obj=SimpleNamespace(app=found))

    yield run
    sys.modules.pop("checked", None)
    declared[:] = kept


def test_the_schedules_of_an_app_are_checked(check) -> None:
    result = check()
    assert result.exit_code == 1
    assert "'not-json'" in result.stderr
    assert "this app has no task 'checked.nowhere'" in result.stderr
    assert "of-the-app.db" in result.stderr  # where there is no schema
    assert "redis://127.0.0.1:1/7" in result.stderr


def test_the_broker_of_an_app_is_checked(check) -> None:
    result = check(code=APP.replace("memory://", "redis://:hunter2@127.0.0.1:1/0"))
    assert "the broker at redis://:***@127.0.0.1:1/0 does not answer" in result.stderr


def test_the_values_in_force_are_listed(check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRONQ_REDIS_URL", "redis://127.0.0.1:1/3")
    lines = {line.split()[0]: line for line in check("--list").stdout.splitlines() if line.strip()}
    assert "sqlite:///of-the-app.db" in lines["CRONQ_DATABASE_URL"]  # the app's
    assert " 7.0 " in lines["CRONQ_LOCK_S"]
    assert "redis://127.0.0.1:1/3" in lines["CRONQ_REDIS_URL"]  # the environment goes first
    assert " 15.0 " in lines["CRONQ_LEASE_S"]  # the default


def test_a_wrong_setting_of_the_app_is_named(check) -> None:
    result = check(code=APP.replace("= 7.0", "= 'soon'"))
    assert result.exit_code == 1
    assert "CRONQ_LOCK_S=soon" in result.stderr
