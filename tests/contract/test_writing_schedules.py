"""Who writes a schedule on top of what they have seen never overwrites what they have not."""

from functools import partial

import pytest

from cronq.declaration import every
from cronq.errors import VersionConflict
from cronq.schedule import Schedule
from cronq.store import control
from cronq.store.database import Database
from cronq.store.schedules import get_schedule


def made(period: str) -> Schedule:
    return every(period).schedule(name="hourly", task="demo.work")


def test_who_has_seen_none_makes_one_and_overwrites_none(database: Database) -> None:
    assert control.write(database, made("1h"), actor="ann", version=0)[1]
    with pytest.raises(VersionConflict, match="there already, at version 1"):
        control.write(database, made("2h"), actor="bob", version=0)
    control.delete(database, "hourly")
    with pytest.raises(VersionConflict, match="was deleted"):
        control.write(database, made("2h"), actor="bob", version=1)
    stored, new = control.write(database, made("2h"), actor="bob", version=0)
    assert (stored.version, new) == (2, True)


def test_of_two_who_make_the_same_schedule_at_once_the_later_one_is_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.dialect == "sqlite":
        pytest.skip("SQLite lets one writer in at a time")
    write_changes = control.write_changes

    def after_another(*args: object, **more: object) -> None:
        monkeypatch.setattr(control, "write_changes", write_changes)
        control.write(database, made("1h"), actor="ann", version=0)
        partial(write_changes, *args, **more)()

    monkeypatch.setattr(control, "write_changes", after_another)
    with pytest.raises(VersionConflict, match="there already, at version 1"):
        control.write(database, made("2h"), actor="bob", version=0)
    assert get_schedule(database, "hourly").definition == made("1h")
