"""The page that deletes a schedule: only one that the API made, only knowingly, only by an editor."""

import html

import pytest
from fastapi.testclient import TestClient

from cronq.app import Cronq
from cronq.schedule import Schedule
from cronq.store.schedules import Change, get_schedule, write_changes
from cronq.store.tokens import Role, create_token
from cronq.web.render import COOKIE

from .steps import PAGE, declare

NAME = "with/slash & <b>more"
ASKED = {"schedule": NAME}


def test_it_asks_first_and_then_the_history_stays(client: TestClient, parts: Cronq) -> None:
    declare(parts, NAME)
    address = "/delete?schedule=with/slash%20%26%20%3Cb%3Emore"
    assert f'href="{address}"' in client.get(f"/schedules/{NAME}", headers=PAGE).text
    asked = client.get(address, headers=PAGE)
    assert asked.status_code == 200
    assert "Delete with/slash &amp; &lt;b&gt;more?" in asked.text
    assert f'action="{address}"' in asked.text
    assert get_schedule(parts.database, NAME).retired_at is None
    done = client.post("/delete", params=ASKED, data={"version": "1"}, headers=PAGE)
    assert done.status_code == 303
    assert get_schedule(parts.database, NAME).retired_at is not None
    after = client.get(done.headers["location"], headers=PAGE).text
    assert "Deleted. No further fire time becomes a job." in after
    assert "/delete" not in after
    assert client.get(address, headers=PAGE).status_code == 409


@pytest.mark.parametrize("seen", ["1", "", "9" * 5000])
def test_one_that_was_changed_since_it_was_looked_at_stays(
    client: TestClient, parts: Cronq, seen: str
) -> None:
    declare(parts, NAME)
    declare(parts, NAME, jitter="30s")
    refused = client.post("/delete", params=ASKED, data={"version": seen}, headers=PAGE)
    assert refused.status_code in (409, 412)
    assert get_schedule(parts.database, NAME).retired_at is None


def test_code_keeps_its_schedules(client: TestClient, parts: Cronq) -> None:
    declared = Schedule(name="of-code", task="demo.work", timing={"kind": "every", "seconds": 60})
    change = Change(declared, first_fire_at=parts.database.clock(), restart=True, delay_s=None)
    with parts.database.begin() as connection:
        write_changes(parts.database, connection, [change], source="code:demo", actor="deploy 1")
    assert "/delete" not in client.get("/schedules/of-code", headers=PAGE).text
    refused = client.get("/delete?schedule=of-code", headers=PAGE)
    assert refused.status_code == 409
    assert "belongs to code:demo; change it there" in html.unescape(refused.text)
    assert client.post("/delete?schedule=of-code", data={"version": "1"}).status_code == 409


def test_it_takes_an_editor(client: TestClient, parts: Cronq) -> None:
    declare(parts, NAME)
    client.cookies.set(COOKIE, create_token(parts.database, "op", Role.OPERATOR))
    assert "/delete" not in client.get(f"/schedules/{NAME}", headers=PAGE).text
    assert client.get("/delete", params=ASKED, headers=PAGE).status_code == 403
    assert client.post("/delete", params=ASKED, data={"version": "1"}, headers=PAGE).status_code == 403
    assert get_schedule(parts.database, NAME).retired_at is None
