"""A new release of the time zone data moves fire times: plans them anew, and says which ones moved."""

from datetime import datetime

from cronq.store.ahead import planned_ahead
from cronq.store.database import Database
from cronq.store.deploys import read_stamp, write_stamp
from cronq.store.schedules import Change, list_schedules, write_changes
from cronq.store.terms import Term, hold_term
from cronq.telemetry.log import get_logger
from cronq.timing.bounds import tz_of
from cronq.timing.replan import moved, zone_data_version

SOURCE = "zone data"

log = get_logger(__name__)


def follow_zone_data(database: Database, *, term: Term, now: datetime) -> int:
    """Plan anew what another version of the zone data had planned; return how many schedules moved."""
    version = zone_data_version()
    with database.begin() as connection:
        hold_term(connection, term)
        known = read_stamp(connection, SOURCE)
        if known == version:
            return 0
        write_stamp(database, connection, SOURCE, version)
        if known is None:
            return 0
        planned = planned_ahead(connection, now)
        changed = 0
        for stored in list_schedules(database, connection=connection):
            timing = stored.timing  # one that cannot be read has neither a zone nor fire times
            if tz_of(timing) == "UTC" or stored.next_fire_at is None or stored.next_fire_at <= now:
                continue  # what is missed already is the catch-up's to decide
            ahead = [*planned.get(stored.id, ()), stored.next_fire_at]
            difference = moved(timing, ahead, now, max(ahead))
            if difference:
                changed += 1
                log.warning(
                    "zone_data.moved",
                    schedule=stored.name,
                    gone=", ".join(map(str, difference.gone)),
                    new=", ".join(map(str, difference.new)),
                )
                change = Change(stored.definition, timing.next(now), True, None)
                write_changes(
                    database, connection, [change], source=stored.source, actor=f"zone data {version}"
                )
    log.info("zone_data.changed", before=known, now=version, moved=changed)
    return changed
