"""What is to be done when? Schedules, and what is asked for in one piece: fan-outs and backfills."""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, String, Table, Text

from cronq.store.instants import UtcDateTime
from cronq.store.tables.base import metadata, partial_index

schedule = Table(
    "cronq_schedule",
    metadata,
    Column("id", String(36), primary_key=True, comment="uuid5 of the name"),
    Column("name", String(255), nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("source", String(255), nullable=False, comment="code:<app>, or api: who may change it"),
    Column("shard", Integer, nullable=False),
    Column("task", String(255), nullable=False),
    Column("definition", JSON, nullable=False, comment="the Schedule value"),
    Column(
        "next_fire_at", UtcDateTime, comment="the first fire time without a disposition; null: none to come"
    ),
    Column("delay_s", Float, comment="fixed delay: seconds from the end of a job to the next fire time"),
    Column("paused_at", UtcDateTime),
    Column("pause_note", Text),
    Column("resumed_at", UtcDateTime, comment="failures before it do not count towards pause_after"),
    Column("retired_at", UtcDateTime, comment="no longer declared by its source; kept for its history"),
    Column("fault", Text, comment="why it could not be planned; the other schedules go on"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    partial_index(
        "cronq_schedule_waits_for_end",
        "shard",
        where="delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL",
    ),
    partial_index(
        "cronq_schedule_due",
        "shard",
        "next_fire_at",
        where="next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL",
    ),
)

schedule_version = Table(
    "cronq_schedule_version",
    metadata,
    Column("schedule_id", String(36), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("definition", JSON, nullable=False),
    # For the trigger that adds a batch: PostgreSQL takes no JSON apart that has a zero byte anywhere in it.
    Column("on_complete", Text),
    Column("callback_url", Text),
    Column("actor", String(255), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

deploy = Table(
    "cronq_deploy",
    metadata,
    Column("source", String(255), primary_key=True),
    Column("stamp", String(255), nullable=False, comment="the newest deploy whose schedules were taken over"),
    Column("at", UtcDateTime, nullable=False),
)

batch = Table(
    "cronq_batch",
    metadata,
    Column("id", String(36), primary_key=True, comment="the id of the job that finds its items"),
    Column("schedule_id", String(36), nullable=False),
    Column("schedule_name", String(255), nullable=False),
    Column("fire_time", UtcDateTime, comment="null: it was asked for by hand"),
    Column("task", String(255), nullable=False),
    Column("total", Integer, nullable=False, server_default="0", comment="how many items were found"),
    Column("on_complete", String(255), comment="the task that runs once when all items are at an end"),
    Column("callback_url", Text, comment="whom to tell when all items are at an end"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("paused_at", UtcDateTime),
    Column("cancelled_at", UtcDateTime),
    Column("ended_at", UtcDateTime, comment="when all items were at an end; null: they are not"),
    Column("counts", JSON, comment="of an ended one: how many items ended in each state"),
    partial_index("cronq_batch_open", "schedule_id", where="ended_at IS NULL"),
    Index("cronq_batch_by_time", "created_at", "id"),
)

RUNNING_BACKFILL = "state = 'RUNNING'"

backfill = Table(
    "cronq_backfill",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("schedule_id", String(36), nullable=False),
    Column("schedule_name", String(255), nullable=False),
    Column("range_start", UtcDateTime, nullable=False, comment="inclusive"),
    Column("range_end", UtcDateTime, nullable=False, comment="exclusive"),
    Column("concurrency", Integer, nullable=False, comment="how many of its jobs are under way at a time"),
    Column("newest_first", Boolean, nullable=False),
    Column("again", Boolean, nullable=False, comment="also what has completed"),
    Column("state", String(16), nullable=False),
    Column("note", Text, comment="of PAUSED by cronq itself: why"),
    Column("position", UtcDateTime, comment="where it goes on; null: the range is through"),
    Column("fires", Integer, nullable=False, comment="fire times in the range"),
    Column("planned", Integer, nullable=False, server_default="0", comment="jobs it has made so far"),
    Column("actor", String(255), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    partial_index("cronq_backfill_running", "id", where=RUNNING_BACKFILL),
)
