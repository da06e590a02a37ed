"""A new release of the zone data: what it moves is planned anew, what it does not touch stays."""

from datetime import timedelta

from sqlalchemy import insert, select

from cronq.beat.zone_data import SOURCE, follow_zone_data
from cronq.store.database import Database
from cronq.store.tables import deploy, schedule
from cronq.timing import Cron

from .rows import Rows


def known_version(database: Database, stamp: str) -> None:
    with database.begin() as connection:
        connection.execute(insert(deploy).values(source=SOURCE, stamp=stamp, at=database.now()))


def test_a_fire_time_that_the_new_rules_do_not_name_is_planned_anew(database: Database, rows: Rows):
    now = rows.now()
    paris = Cron("0 6 * * *", tz="Europe/Paris")
    # As planned under rules that are no longer so: an hour late.
    moved = rows.schedule("moved", timing=paris, first=paris.next(now) + timedelta(hours=1))
    stays = rows.schedule("stays", timing=paris, first=paris.next(now))
    known_version(database, "1999a")

    assert follow_zone_data(database, term=rows.begin_term("a"), now=now) == 1

    with database.autocommit() as connection:
        query = select(schedule.c.id, schedule.c.next_fire_at, schedule.c.version)
        after = {row.id: (row.next_fire_at, row.version) for row in connection.execute(query)}
    assert after == {moved: (paris.next(now), 2), stays: (paris.next(now), 1)}


def test_the_same_zone_data_is_looked_at_once(database: Database, rows: Rows):
    term, now = rows.begin_term("a"), rows.now()
    assert follow_zone_data(database, term=term, now=now) == 0
    wrong = rows.schedule("x", timing=Cron("0 6 * * *", tz="Europe/Paris"), first=now + timedelta(minutes=1))
    assert follow_zone_data(database, term=term, now=now) == 0
    assert wrong
