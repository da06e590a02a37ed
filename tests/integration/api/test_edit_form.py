"""The page on which a schedule is changed or made: what is typed is never lost, nor what is not shown."""

import html
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from cronq.api.schedule_texts import FIELDS
from cronq.app import Cronq
from cronq.errors import UnknownSchedule
from cronq.schedule import Schedule
from cronq.store.schedules import Change, get_schedule, mark_fault, write_changes
from cronq.store.tables import schedule_version
from cronq.store.tokens import Role, create_token
from cronq.web.render import COOKIE

from .steps import PAGE, declare

NAME = "with/slash & more"
NIGHTLY = {"task": "demo.work", "cron": "30 2 * * *", "tz": "Europe/Berlin"}


def made(client: TestClient, name: str = NAME, **more: Any) -> None:
    answer = client.put(f"/api/schedules/{name}", json={**NIGHTLY, **more})
    assert answer.status_code in (200, 201), answer.text


def form(text: str) -> dict[str, str]:
    """Return what a browser would send of the form on a page, its lines as browsers end them."""
    fields = dict(
        re.findall(r'<input (?:type="hidden" )?(?:id="\w+" )?name="(\w+)"[^>]* value="([^"]*)"', text)
    )
    fields |= dict(re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n([^<]*)</textarea>', text))
    for name, options in re.findall(r'<select [^>]*name="(\w+)"[^>]*>(.*?)</select>', text):
        values = re.findall(r'<option value="([^"]*)"( selected)?', options)
        fields[name] = next((value for value, chosen in values if chosen), values[0][0])
    return {name: html.unescape(value).replace("\n", "\r\n") for name, value in fields.items()}


def opened(client: TestClient, name: str = NAME) -> dict[str, str]:
    answer = client.get("/edit", params={"schedule": name} if name else {}, headers=PAGE)
    assert answer.status_code == 200, answer.text
    return form(answer.text)


def sent(client: TestClient, given: dict[str, str], name: str = NAME, do: str = "save") -> Any:
    return client.post("/edit", params={"schedule": name} if name else {}, data={**given, "do": do})


def declaration(parts: Cronq, name: str = NAME) -> Schedule:
    return get_schedule(parts.database, name).definition


def test_a_schedule_is_changed_after_a_look_without_a_script(client: TestClient, parts: Cronq) -> None:
    made(client)
    assert "/edit?schedule=with/slash%20%26%20more" in client.get(f"/schedules/{NAME}", headers=PAGE).text
    given = opened(client) | {"when": "0 4 * * *"}
    assert given.keys() == {"version", *FIELDS}
    look = sent(client, given, do="look")
    assert look.status_code == 200
    assert "At 04:00 every day" in look.text
    assert len(re.findall(r" 04:00:00 \+0\d:00 Europe/Berlin", look.text)) == 5
    assert get_schedule(parts.database, NAME).version == 1
    saved = sent(client, form(look.text))
    assert saved.status_code == 303
    page = client.get(saved.headers["location"], headers=PAGE).text
    assert "Saved." in page
    assert "At 04:00 every day" in page
    stored = get_schedule(parts.database, NAME)
    assert (stored.version, stored.definition.timing["expression"]) == (2, "0 4 * * *")
    assert client.get("/api/versions", params={"schedule": NAME}).json()["items"][0]["actor"] == "api local"


def test_one_is_made_and_none_of_the_same_name_is_overwritten(client: TestClient, parts: Cronq) -> None:
    assert 'href="/edit"' in client.get("/schedules", headers=PAGE).text
    given = opened(client, "") | {
        "name": "fresh",
        "task": "demo.work",
        "kind": "every",
        "when": "90s",
        "args": '["eu", 7]',
        "kwargs": '{"deep": {"list": [null, 1.5]}}',
        "overlap": "queue",
        "buffer": "3",
        "jitter": "5s",
        "max_attempts": "4",
    }
    assert "Every 1m30s" in sent(client, given, "", "look").text
    assert sent(client, given, "").headers["location"] == "/schedules/fresh?said=schedule_saved"
    fresh = declaration(parts, "fresh")
    assert (fresh.args, fresh.kwargs) == (("eu", 7), {"deep": {"list": [None, 1.5]}})
    assert (fresh.overlap, fresh.buffer, fresh.jitter.seconds, fresh.max_attempts) == ("queue", 3, 5, 4)
    again = sent(client, given | {"when": "1h"}, "")
    assert again.status_code == 422
    assert "is there already, at version 1" in html.unescape(again.text)
    assert form(again.text)["when"] == "1h"
    assert declaration(parts, "fresh") == fresh
    # Of a deleted one the name is free.
    client.delete("/api/schedules/fresh")
    assert sent(client, given | {"when": "1h"}, "").status_code == 303
    assert declaration(parts, "fresh").timing == {"kind": "every", "seconds": 3600}


@pytest.mark.parametrize(
    ("odd", "field", "said"),
    [
        ({"task": ""}, "task", "Field required"),
        ({"kind": "never"}, "kind", "say one of cron, every"),
        ({"when": " "}, "when", "say when"),
        ({"when": "61 * * * *"}, "when", "61"),
        ({"kind": "every", "when": "ninety", "tz": ""}, "when", "'ninety' is no length of time"),
        ({"kind": "every", "when": "90s"}, "tz", "tz goes with cron and rrule, not with every"),
        ({"kind": "at", "when": "soon"}, "when", "this is no time"),
        ({"kind": "at", "when": "1960-01-01T00:00"}, "when", "between 1970 and 2200"),
        ({"kind": "rrule", "when": "FREQ=SOMETIMES"}, "when", "FREQ says how often (character 6)"),
        ({"kind": "rrule", "when": "FREQ=DAILY", "dst": "both"}, "dst", "dst goes with cron"),
        ({"tz": "Europe/Berln"}, "tz", "did you mean Europe/Berlin?"),
        ({"args": "eu, 7"}, "args", "this is no JSON"),
        ({"args": '{"a": 1}'}, "args", "this is not a list"),
        ({"kwargs": '{"a": NaN}'}, "kwargs", "NaN is no number"),
        ({"kwargs": "[" * 100_000}, "kwargs", "recursion"),
        ({"kwargs": '{"a": 1e999}'}, "kwargs", "the arguments are not JSON"),
        ({"kwargs": '{"password": "***"}'}, "kwargs", "password has *** for a secret"),
        ({"args": '["redis://u:***@h"]'}, "args", "for a password that is not stored"),
        ({"queue": "a", "needs": "cpu"}, "needs", "give queue or needs"),
        ({"priority": "11"}, "priority", "less than or equal to 9"),
        ({"buffer": "few"}, "buffer", "valid integer"),
        ({"overlap": "maybe"}, "overlap", "should be"),
        ({"catch_up_window": "0s"}, "catch_up_window", "more than nothing"),
        ({"jitter": "a bit"}, "jitter", "no length of time"),
        ({"pause_after": "0"}, "pause_after", "greater than or equal to 1"),
        ({"callback_url": "ftp://x"}, "callback_url", "must be like https://host/path"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_is_kept(
    client: TestClient, parts: Cronq, odd: dict[str, str], field: str, said: str
) -> None:
    made(client)
    for do in ("look", "save"):
        answer = sent(client, opened(client) | {"when": "0 4 * * *"} | odd, do=do)
        assert answer.status_code == 422
        at = re.search(rf'id="wrong-{field}">(.*?)</small>', answer.text)
        assert at is not None, re.findall(r'id="wrong-.*?</small>', answer.text)
        assert said in html.unescape(at[1])
        assert re.search(rf'id="{field}" name="{field}" aria-invalid="true"', answer.text)
        shown = form(answer.text)
        assert all(shown[name] == typed for name, typed in odd.items() if name not in ("kind", "overlap"))
        assert "would run" not in answer.text.split("<form", 2)[-1].split('<div class="buttons">')[0]
    assert get_schedule(parts.database, NAME).version == 1


def test_all_that_is_wrong_is_said_at_once(client: TestClient) -> None:
    wrong = {
        "name": "x" * 256,
        "when": "61 * * * *",
        "tz": "Mars/Base",
        "args": "[",
        "priority": "99",
        "jitter": "-1",
        "callback_url": "x",
    }
    answer = sent(client, opened(client, "") | wrong, "")
    assert answer.status_code == 422
    found = set(re.findall(r'id="wrong-(\w+)"', answer.text))
    assert found == {*wrong, "task"}
    assert '<details class="broad" open>' in answer.text


def test_a_newer_version_is_shown_and_overwritten_only_knowingly(client: TestClient, parts: Cronq) -> None:
    made(client, kwargs={"password": "hunter2", "region": "eu"})
    mine = opened(client) | {"when": "0 4 * * *"}
    made(client, kwargs={"password": "other", "region": "us"}, cron="0 5 * * *")
    refused = sent(client, mine)
    assert refused.status_code == 409
    text = html.unescape(refused.text)
    assert "somebody changed it meanwhile" in text
    for what, old, new in [
        ("timing.expression", "30 2 * * *", "0 5 * * *"),
        ("kwargs.region", "eu", "us"),
        ("kwargs.password", "***", "***"),
    ]:
        assert f'<code>{what}</code>: <del>"{old}"</del> → <ins>"{new}"</ins>' in text
    assert "by api local" in text
    assert "hunter2" not in text
    shown = form(refused.text)
    # The time is changed by both, the arguments by them alone.
    assert 'You both changed <a href="#when">Written as</a>: saving' in text
    assert {name for name in mine if shown[name] != mine[name]} == {"version", "kwargs"}
    assert '"region": "us"' in shown["kwargs"]
    assert get_schedule(parts.database, NAME).version == 2
    assert sent(client, shown).status_code == 303
    now = get_schedule(parts.database, NAME)
    assert (now.version, now.definition.timing["expression"]) == (3, "0 4 * * *")
    assert now.definition.kwargs == {"password": "other", "region": "us"}


def test_what_was_left_alone_keeps_what_somebody_else_saved(client: TestClient, parts: Cronq) -> None:
    made(client)
    mine = opened(client) | {"when": "0 4 * * *", "queue": "slow"}
    made(client, priority=5, queue="fast", jitter="30s")
    refused = sent(client, mine)
    text = html.unescape(refused.text)
    assert 'You both changed <a href="#queue">Queue</a>: saving' in text
    assert '<details class="broad" open>' in text
    assert sent(client, form(refused.text)).status_code == 303
    now = declaration(parts)
    assert (now.priority, now.queue, now.jitter.total_seconds()) == (5, "slow", 30)
    assert now.timing["expression"] == "0 4 * * *"


def test_of_who_changed_one_part_of_the_time_all_parts_stand(client: TestClient, parts: Cronq) -> None:
    made(client)
    mine = opened(client) | {"when": "0 4 * * *"}
    answer = client.put(f"/api/schedules/{NAME}", json={"task": "demo.work", "every": 60})
    assert answer.status_code == 200, answer.text
    refused = sent(client, mine)
    assert sent(client, form(refused.text)).status_code == 303
    assert declaration(parts).timing["expression"] == "0 4 * * *"
    assert declaration(parts).timing["tz"] == "Europe/Berlin"


def test_a_version_that_is_not_on_record_leaves_what_was_typed(client: TestClient, parts: Cronq) -> None:
    made(client, priority=3)
    mine = opened(client) | {"queue": "slow"}
    with parts.database.begin() as connection:
        connection.execute(update(schedule_version).values(definition={"task": 7}))
    made(client, priority=5)
    refused = sent(client, mine)
    assert 'You both changed <a href="#priority">Priority</a>, <a href="#queue">Queue</a>' in refused.text
    assert form(refused.text)["priority"] == "3"


def test_one_that_was_deleted_meanwhile_is_made_anew_only_knowingly(client: TestClient, parts: Cronq) -> None:
    made(client, kwargs={"password": "hunter2"})
    mine = opened(client)
    client.delete(f"/api/schedules/{NAME}")
    refused = sent(client, mine)
    assert refused.status_code == 409
    assert "Somebody deleted it meanwhile" in refused.text
    assert get_schedule(parts.database, NAME).retired_at is not None
    assert client.get("/edit", params={"schedule": NAME}, headers=PAGE).status_code == 409
    assert sent(client, form(refused.text)).status_code == 303
    assert get_schedule(parts.database, NAME).retired_at is None
    assert declaration(parts).kwargs == {"password": "hunter2"}


def test_a_secret_is_not_shown_and_stays_unless_it_is_replaced(client: TestClient, parts: Cronq) -> None:
    made(client, args=["redis://u:pa55@h"], kwargs={"password": "hunter2", "region": "eu"})
    page = client.get("/edit", params={"schedule": NAME}, headers=PAGE).text
    assert "hunter2" not in page
    assert "pa55" not in page
    given = opened(client)
    assert given["args"] == '["redis://u:***@h"]'
    assert sent(client, given | {"tenant": "acme"}).status_code == 303
    assert declaration(parts).args == ("redis://u:pa55@h",)
    assert declaration(parts).kwargs == {"password": "hunter2", "region": "eu"}
    touched = opened(client) | {"kwargs": '{"region": "us", "password": "***"}'}
    look = sent(client, touched, do="look")
    assert "hunter2" not in look.text
    assert sent(client, form(look.text)).status_code == 303
    assert declaration(parts).kwargs == {"password": "hunter2", "region": "us"}
    replaced = opened(client) | {"kwargs": '{"region": "us", "password": "new"}', "args": ""}
    assert sent(client, replaced).status_code == 303
    assert (declaration(parts).args, declaration(parts).kwargs) == ((), {"region": "us", "password": "new"})


def test_what_the_form_does_not_show_is_said_and_kept(client: TestClient, parts: Cronq) -> None:
    made(client, "extract")
    items = ["eu", 7, {"item": "us", "kwargs": {"token": "hunter2"}, "tenant": "acme"}]
    made(client, fan_out=items, on_complete="demo.sum", after={"any": ["extract"], "on_failure": True})
    before = declaration(parts)
    page = html.unescape(client.get("/edit", params={"schedule": NAME}, headers=PAGE).text)
    assert "one job for each of 3 items, then <code>demo.sum</code>; it comes after extract" in page
    assert "hunter2" not in page
    assert sent(client, opened(client) | {"tenant": "acme"}).status_code == 303
    after = declaration(parts)
    assert (after.fan_out, after.on_complete, after.after) == (before.fan_out, "demo.sum", before.after)
    # What it comes after may have gone meanwhile: that is no field of the form.
    client.delete("/api/schedules/extract")
    refused = sent(client, opened(client) | {"tenant": "globex"})
    assert refused.status_code == 422
    assert "'extract', which is not declared" in html.unescape(refused.text)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"fan_out": ["eu"]}, "leaves as it is: one job for each of 1 item."),
        ({"fan_out": ["eu"], "on_complete": "demo.sum"}, "1 item, then <code>demo.sum</code>."),
        ({"after": "extract"}, "leaves as it is: it comes after extract."),
    ],
    ids=["items", "and their end", "another before it"],
)
def test_each_part_that_the_form_does_not_show_is_said_alone(
    client: TestClient, more: dict[str, Any], said: str
) -> None:
    made(client, "extract")
    made(client, **more)
    page = client.get("/edit", params={"schedule": NAME}, headers=PAGE)
    assert page.status_code == 200
    assert said in html.unescape(page.text)


def test_an_instant_without_an_offset_is_on_the_clocks_of_the_zone(client: TestClient, parts: Cronq) -> None:
    given = opened(client, "") | {"name": "once", "task": "t", "kind": "at", "when": "2126-07-01T12:00"}
    assert sent(client, given | {"tz": "Asia/Tokyo"}, "").status_code == 303
    assert declaration(parts, "once").timing == {"kind": "at", "instant": "2126-07-01T03:00:00Z"}
    past = opened(client, "") | {"name": "past", "task": "t", "kind": "at", "when": "2020-01-01T00:00"}
    assert "it would never run" in sent(client, past, "", "look").text
    saved = sent(client, past, "")
    assert (saved.status_code, "it would never run: Once, at" in saved.text) == (422, True)


def test_what_the_database_cannot_store_is_said_and_not_lost(client: TestClient, parts: Cronq) -> None:
    made(client)
    typed = r'{"nul": "\u0000"}'
    answer = sent(client, opened(client) | {"kwargs": typed})
    if answer.status_code == 303:  # SQLite stores it
        assert declaration(parts).kwargs == {"nul": "\0"}
        return
    assert answer.status_code == 422
    assert "a value in it cannot be stored" in answer.text
    assert form(answer.text)["kwargs"] == typed


def test_saving_takes_back_one_that_was_set_aside(client: TestClient, parts: Cronq) -> None:
    made(client)
    stored = get_schedule(parts.database, NAME)
    with parts.database.begin() as connection:
        mark_fault(parts.database, connection, stored.id, "it never fires again")
    assert sent(client, opened(client)).status_code == 303
    again = get_schedule(parts.database, NAME)
    assert (again.fault, again.version) == (None, 2)
    assert again.next_fire_at is not None


def test_code_keeps_its_schedules(client: TestClient, parts: Cronq) -> None:
    declared = Schedule(name="of-code", task="demo.work", timing={"kind": "every", "seconds": 60})
    now = parts.database.clock()
    change = Change(declared, first_fire_at=now, restart=True, delay_s=None)
    with parts.database.begin() as connection:
        write_changes(parts.database, connection, [change], source="code:demo", actor="deploy 1")
    page = client.get("/schedules/of-code", headers=PAGE).text
    assert "/edit" not in page
    assert "changed in the code of demo" in page
    refused = client.get("/edit?schedule=of-code", headers=PAGE)
    assert refused.status_code == 409
    assert "belongs to code:demo; change it there" in html.unescape(refused.text)
    given = opened(client, "") | {"name": "of-code", "task": "t", "when": "0 4 * * *"}
    taken = sent(client, given, "")
    assert taken.status_code == 422
    assert re.search(r'id="wrong-name">[^<]*belongs to code:demo', taken.text)


@pytest.mark.parametrize("policy", [{"start": "2026-01-01T00:00:00Z"}])
def test_a_timing_that_the_form_cannot_hold_is_not_cut_short(
    client: TestClient, parts: Cronq, policy: dict[str, Any]
) -> None:
    declare(parts, "bounded", **policy)
    refused = client.get("/edit?schedule=bounded", headers=PAGE)
    assert refused.status_code == 409
    assert "its timing (bounded) is more than this form can hold" in html.unescape(refused.text)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_an_editor_is_offered_the_form_and_may_send_it(
    client: TestClient, parts: Cronq, role: Role
) -> None:
    made(client)
    given = opened(client) | {"when": "0 4 * * *"}
    client.cookies.set(COOKIE, create_token(parts.database, "eve", role))
    for path in ("/schedules", f"/schedules/{NAME}"):
        assert "/edit" not in client.get(path, headers=PAGE).text
    assert client.get("/edit", headers=PAGE).status_code == 403
    assert client.get("/edit", params={"schedule": NAME}, headers=PAGE).status_code == 403
    assert sent(client, given).status_code == 403
    assert get_schedule(parts.database, NAME).version == 1
    client.cookies.set(COOKIE, create_token(parts.database, "ann", Role.EDITOR))
    assert sent(client, given).status_code == 303
    assert client.get("/api/versions", params={"schedule": NAME}).json()["items"][0]["actor"] == "api ann"


def test_no_other_site_can_send_the_form(client: TestClient, parts: Cronq) -> None:
    given = opened(client, "") | {"name": "evil", "task": "t", "when": "0 4 * * *", "do": "save"}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.post("/edit", data=given, headers=headers).status_code == 403
    with pytest.raises(UnknownSchedule):
        get_schedule(parts.database, "evil")
