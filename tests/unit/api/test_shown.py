"""What people see: no secret, and times and lengths that read well."""

from datetime import UTC, datetime, timedelta

import pytest

from cronq.api.feed import event_id, moment_of
from cronq.api.gate import is_loopback
from cronq.api.problems import Problem
from cronq.api.reply import cursor_of, read_cursor
from cronq.store.tokens import Role
from cronq.telemetry.masking import with_secrets, without_secrets
from cronq.views import last_line, to_json
from cronq.web.actions import local_path
from cronq.web.charts import sparkline
from cronq.web.format import chip, moment, span

AT = datetime(2026, 11, 21, 2, 30, 0, 123456, tzinfo=UTC)


def test_secrets_become_stars_wherever_they_hide() -> None:
    shown = without_secrets(
        {
            "path": "/a",
            "api_key": "k",
            "nested": [{"password": "p", "dbPassword": "p", "access_token": "t"}],
            "url": "amqp://user:hunter2@host/v",
            "tokens_used": 3,
            "secret": None,
        }
    )
    assert shown == {
        "path": "/a",
        "api_key": "***",
        "nested": [{"password": "***", "dbPassword": "***", "access_token": "***"}],
        "url": "amqp://user:***@host/v",
        "tokens_used": 3,
        "secret": None,
    }


@pytest.mark.parametrize(
    "name",
    ["pwd", "db_pwd", "password1", "passwordNew", "passwd_old", "PASSPHRASE_2", "access_key", "db_pass"],
)
def test_a_secret_is_known_by_its_name_however_that_goes_on(name: str) -> None:
    assert without_secrets({name: "hunter2"}) == {name: "***"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@ss@h/db", "postgresql://u:***@h/db"),
        ("postgresql://user@srv:pw@srv.example.org/db", "postgresql://user@srv:***@srv.example.org/db"),
        ('{"a":"redis://:pw@h","mail":"a@b"}', '{"a":"redis://:***@h","mail":"a@b"}'),
        ('amqp://u:p"w@h', "amqp://u:***@h"),
        ("amqp://u:pw@h1,amqp://u:pw@h2", "amqp://u:***@h1,amqp://u:***@h2"),
        ("http://h:8080/a@b", "http://h:8080/a@b"),
    ],
)
def test_no_part_of_a_password_in_an_address_is_left(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_one_long_word_beside_an_address_is_looked_at_once() -> None:
    word = "a" * 262_144  # looked at from each of its characters on, it takes a minute and more
    assert without_secrets(f"{word} amqp://u:pw@h") == f"{word} amqp://u:***@h"


def test_a_traceback_keeps_its_words_and_loses_its_passwords() -> None:
    text = "connect to redis://:pw@h:1/0 and postgresql://u:a@b:5/x failed at 12:30@noon"
    assert without_secrets(text) == (
        "connect to redis://:***@h:1/0 and postgresql://u:***@b:5/x failed at 12:30@noon"
    )


def test_instants_are_rfc_3339_in_utc() -> None:
    assert to_json({"at": AT}) == '{"at": "2026-11-21T02:30:00.123456Z"}'


def test_a_cursor_comes_back_as_it_went() -> None:
    assert read_cursor(cursor_of(AT, "an-id")) == (AT, "an-id")
    assert read_cursor(None) is None


@pytest.mark.parametrize("wrong", ["x", "bm8", "WyJhIl0", "eyJhIjoxfQ", "ÿ"])
def test_a_cursor_that_is_none_of_ours_is_a_problem(wrong: str) -> None:
    with pytest.raises(Problem) as caught:
        read_cursor(wrong)
    assert caught.value.status == 400


def test_an_event_id_is_its_moment() -> None:
    assert moment_of(event_id(AT)) == AT
    for wrong in ("x", "9" * 40, ""):
        with pytest.raises((ValueError, OverflowError)):
            moment_of(wrong)


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.1.2.3", True),
        ("0.0.0.0", False),
        ("127.example.com", False),
    ],
)
def test_loopback_is_this_machine_only(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_each_role_includes_the_ones_before_it() -> None:
    assert Role.EDITOR.includes(Role.VIEWER)
    assert Role.OPERATOR.includes(Role.OPERATOR)
    assert not Role.VIEWER.includes(Role.OPERATOR)


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", ""])
def test_the_page_never_leads_elsewhere(path: str) -> None:
    assert local_path(path) == "/"


def test_the_page_leads_back_to_its_own_paths() -> None:
    assert local_path("/jobs?state=FAILED") == "/jobs?state=FAILED"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "—"), (0.0042, "4 ms"), (1.23, "1.2 s"), (245, "4 min 5 s"), (3700, "1 h 1 min"), (-2, "-2.0 s")],
)
def test_a_length_is_told_in_a_unit_that_fits(seconds: float | None, text: str) -> None:
    assert span(None if seconds is None else timedelta(seconds=seconds)) == text


def test_a_time_shows_zone_and_offset() -> None:
    assert "2026-11-21 03:30:00 +01:00 Europe/Berlin" in moment(AT, "Europe/Berlin")
    assert "2026-11-21 02:30:00 UTC" in moment(AT)


def test_a_state_is_a_word_and_markup_is_escaped() -> None:
    assert chip("TIMED_OUT") == '<span class="chip timed-out">timed out</span>'
    assert last_line("Traceback\nValueError: no\n") == "ValueError: no"


def test_the_sparkline_says_what_it_draws() -> None:
    row = {"state": "COMPLETED", "reason": None, "fire_time": AT, "started_at": AT, "finished_at": AT}
    skipped = row | {"state": "SKIPPED", "reason": "paused", "started_at": None}
    drawn = sparkline([row, skipped])
    assert 'aria-label="last 2: 1 completed, 1 skipped"' in drawn
    assert "style=" not in drawn


HELD = {
    "api_key": "k",
    "region": "eu",
    "urls": ["redis://u:one@a", "redis://u:two@b", "plain"],
    "hosts": [{"name": "a", "password": "pa"}, {"name": "b", "password": "pb"}],
}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ({}, {}),
        ({"region": "us"}, {"region": "us"}),
        ({"api_key": "other"}, {"api_key": "other"}),
        ({"region": True, "note": "***"}, {"region": True, "note": "***"}),
        ({"api_key": "***"}, {"api_key": "k"}),
        ({"urls": ["redis://u:***@b"]}, {"urls": ["redis://u:two@b"]}),
        ({"urls": ["redis://u:***@b", "redis://u:***@a"]}, {"urls": ["redis://u:two@b", "redis://u:one@a"]}),
        (
            {"hosts": [{"name": "b", "password": "***"}, {"name": "a", "password": "***"}]},
            {"hosts": [{"name": "b", "password": "pb"}, {"name": "a", "password": "pa"}]},
        ),
        (
            {"hosts": [{"name": "a", "password": "***"}, {"name": "c", "password": "***"}]},
            {"hosts": [{"name": "a", "password": "pa"}, {"name": "c", "password": "pb"}]},
        ),
    ],
)
def test_stars_are_taken_back_for_the_secret_that_they_stood_for(typed: object, meant: object) -> None:
    assert with_secrets(typed, HELD) == meant


@pytest.mark.parametrize(
    "typed",
    [
        {"token": "***"},
        {"urls": ["redis://u:***@c"]},
        {"region": "redis://u:***@a"},
        {"hosts": [{"name": "c", "password": "***"}]},
        {"hosts": [{"name": "c", "password": "***"}, {"name": "d", "password": "***"}]},
    ],
)
def test_stars_that_stood_for_no_secret_there_are_refused(typed: object) -> None:
    with pytest.raises(ValueError, match=r"\*\*\* for a"):
        with_secrets(typed, HELD)


def test_two_secrets_that_look_alike_are_not_taken_for_each_other() -> None:
    held = ["redis://u:one@a", "redis://u:two@a"]
    assert with_secrets(["redis://u:***@a", "redis://u:***@a"], held) == held
    with pytest.raises(ValueError, match="write it"):
        with_secrets(["redis://u:***@a"], held)
