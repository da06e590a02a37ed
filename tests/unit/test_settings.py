"""A wrong configuration is refused whole, with every mistake named and no password shown."""

import os
from pathlib import Path

import pytest

from cronq.errors import SettingsError
from cronq.settings import Settings, hide_password, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CRONQ_")]:
        monkeypatch.delenv(name)


def problems() -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_without_any_setting_the_defaults_hold() -> None:
    settings = load_settings()
    assert (settings.lock_s, settings.lease_s, settings.horizon_s) == (2.0, 15.0, 60.0)
    assert settings.database_url.startswith("sqlite:///")


def test_the_environment_goes_before_the_app_and_the_app_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRONQ_LOCK_S", "3")
    settings = load_settings({"cronq_lock_s": 9, "cronq_lease_s": 7, "other": 1})
    assert (settings.lock_s, settings.lease_s, settings.horizon_s) == (3.0, 7.0, 60.0)


def test_all_mistakes_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRONQ_LOCK_S", "soon")
    monkeypatch.setenv("CRONQ_LEASE_S", "0")
    monkeypatch.setenv("CRONQ_DATABASE_URL", "mysql://db/x")
    monkeypatch.setenv("CRONQ_LEESE_S", "4")
    told = "\n".join(problems())
    for name in ("CRONQ_LOCK_S=soon", "CRONQ_LEASE_S=0", "CRONQ_DATABASE_URL=mysql", "CRONQ_LEESE_S"):
        assert name in told


def test_a_misspelt_name_is_refused_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRONQ_DATABSE_URL", "sqlite:///x.db")
    assert problems() == ["CRONQ_DATABSE_URL: there is no such setting; did you mean CRONQ_DATABASE_URL?"]


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("CRONQ_DATABASE_URL", "postgres://h/d", "postgresql"),
        ("CRONQ_BROKER_URL", "ampq://h", "amqp"),
        ("CRONQ_REDIS_URL", "rdis://h", "redis"),
    ],
)
def test_a_misspelt_scheme_is_refused_with_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, meant: str
) -> None:
    monkeypatch.setenv(name, value)
    (told,) = problems()
    assert name in told
    assert f"did you mean {meant}" in told


@pytest.mark.parametrize("value", ["foo", "", "postgresql://h:port/d"])
def test_what_is_no_address_is_refused_with_one_that_is(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CRONQ_DATABASE_URL", value)
    (told,) = problems()
    assert told.startswith(f"CRONQ_DATABASE_URL={value}: ")
    assert "write sqlite:///" in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CRONQ_DATABASE_URL", "mysql://me:hunter2@db/x"),
        ("CRONQ_BROKER_URL", "ampq://me:hunter2@rabbit"),
        ("CRONQ_REDIS_URL", "http://:hunter2@redis"),
    ],
)
def test_a_refused_address_does_not_show_its_password(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    (told,) = problems()
    assert "hunter2" not in told
    assert "***" in told


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h/0", "redis://h/0"),
        ("redis://:pw@h/0", "redis://:***@h/0"),
        ("amqp://me:p@w@h:5672//", "amqp://me:***@h:5672//"),
        ("amqp://me@h//", "amqp://me@h//"),
        ("sqlite:///x.db", "sqlite:///x.db"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert hide_password(url) == shown


def test_settings_are_frozen_and_each_says_what_it_means() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().lock_s = 1  # type: ignore[misc]
    assert all(field.description for field in Settings.model_fields.values())
