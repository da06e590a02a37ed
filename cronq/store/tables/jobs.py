"""What becomes of each job? Also which jobs are which: the conditions that indexes and queries share."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from cronq.store.instants import UtcDateTime
from cronq.store.tables.base import metadata, partial_index

WAITING = (
    "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NULL"
)
"""Jobs that wait for their due time, or to be sent."""
FOR_ROOM = (
    "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL "
    "AND waits_for IS NOT NULL"
)
"""Due jobs that wait for room under a limit."""
PUBLISHED = "state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"
"""Jobs whose message is on the broker, or should be."""
PLACED = f"needs IS NOT NULL AND {PUBLISHED}"
"""Jobs with needs whose message waits in the queue of some place."""
FOREIGN = (
    "published_at IS NULL AND held_at IS NULL AND waits_for IS NULL AND (state = 'RETRYING' OR "
    "(state = 'SCHEDULED' AND (attempts > 0 OR item <> '' OR trigger NOT IN ('schedule', 'catch_up'))))"
)
"""Jobs that wait for a due time and that the leader did not plan itself: it has to find them."""
HEAD = "(batch_id IS NULL OR batch_id = id)"
"""A job of its own, or the one that finds a batch's items; not an item."""
ACTIVE_HEAD = f"state IN ('PENDING', 'RUNNING', 'RETRYING') AND {HEAD}"
UNFINISHED_ITEM = "batch_id IS NOT NULL AND state <> 'COMPLETED'"
"""What a batch still has to do, or did not do: a completed item costs nothing to count."""
AWAITING = f"held_at IS NOT NULL AND state = 'SCHEDULED' AND {HEAD}"
"""Jobs that wait for jobs of other schedules."""
BATCH_HEAD = "batch_id = id"
UNCOPIED = "(dead_at IS NULL) <> (copied_at IS NULL)"
"""Jobs that became dead letters, or are none any more, and the broker's dead-letter queue does not say so."""
RUNNING = "state = 'RUNNING'"
AT_REST = "state <> 'RUNNING'"
"""Two halves of the jobs, each with an index of its own; a query has to say them literally to use it."""

job = Table(
    "cronq_job",
    metadata,
    Column("id", String(36), primary_key=True, comment="the dedup id, and the Celery task id"),
    Column("schedule_id", String(36)),
    Column("schedule_name", String(255)),
    Column("schedule_version", Integer),
    Column("fire_time", UtcDateTime),
    Column("item", String(255), nullable=False, server_default=""),
    Column(
        "batch_id", String(36), comment="of a fan-out: the job that finds its items; its own id, or theirs"
    ),
    Column("trigger", String(16), nullable=False),
    Column("task", String(255), nullable=False),
    Column("args", JSON, nullable=False),
    Column("kwargs", JSON, nullable=False),
    Column("queue", String(255), comment="of a job with needs: decided anew whenever it is published"),
    Column("needs", String(255), comment="the kind of machine and the places: cpu@eu-west.a,eu-west+30"),
    Column("priority", Integer),
    Column("tenant", String(255)),
    Column("overlap", String(24), nullable=False),
    Column("exclusive", Boolean, nullable=False, comment="may not run beside another job of its schedule"),
    Column("state", String(16), nullable=False),
    Column("reason", String(24), comment="of SKIPPED: why"),
    Column("waits_for", String(300), comment="the limit that a due job waits for room under"),
    Column(
        "coalesced_into", UtcDateTime, comment="of SKIPPED by coalescing: the fire time that runs instead"
    ),
    Column("due_at", UtcDateTime, nullable=False, comment="fire time and jitter, or when the retry is due"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, comment="null: the task's own"),
    Column(
        "attempts_before", Integer, nullable=False, server_default="0", comment="up to an operator's retry"
    ),
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("lease_token", String(36)),
    Column("lease_until", UtcDateTime),
    Column("worker", String(255)),
    Column("progress", JSON),
    Column("result", JSON),
    Column("error", Text),
    Column("kind", String(32), comment="of its last failure: what sort"),
    Column("cancel_requested_at", UtcDateTime),
    Column("callback_url", Text, comment="whom to tell of its end: a trigger adds a job that does"),
    Column("dead_at", UtcDateTime, comment="when it became a dead letter"),
    Column("copied_at", UtcDateTime, comment="when its message was put into the dead-letter queue"),
    Column(
        "held_at", UtcDateTime, comment="since when it waits for its batch to resume, or for other schedules"
    ),
    Column(
        "awaited",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="the leader is told of its end",
    ),
    Column("planned_at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime),
    Column("publishes", Integer, nullable=False, server_default="0"),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
    # The guarantee that no lock can give: a fire time is planned once, whoever plans it how often.
    UniqueConstraint("schedule_id", "fire_time", "item", name="cronq_job_one_per_fire_time"),
    partial_index("cronq_job_waiting", "due_at", where=WAITING),
    partial_index("cronq_job_for_room", "task", "tenant", "queue", "due_at", where=FOR_ROOM),
    partial_index("cronq_job_for_room_by_schedule", "schedule_id", where=FOR_ROOM),
    partial_index("cronq_job_placed", "needs", "queue", where=PLACED),
    partial_index("cronq_job_foreign", "due_at", "id", where=FOREIGN),
    partial_index("cronq_job_active", "schedule_id", where=ACTIVE_HEAD),
    partial_index("cronq_job_published", "published_at", where=PUBLISHED),
    partial_index("cronq_job_leased", "lease_until", where=RUNNING),
    # Two jobs of one schedule that both got a message cannot both be claimed, unless overlap is allowed.
    partial_index(
        "cronq_job_one_running_per_schedule",
        "schedule_id",
        unique=True,
        where="exclusive AND state = 'RUNNING'",
    ),
    Index("cronq_job_by_state", "state", "planned_at"),
    Index("cronq_job_by_time", "planned_at", "id"),
    # What changed since a moment: the event stream and the metrics read along this. Running jobs are found by
    # their leases, so that a claim and a settlement write one entry here, not four.
    partial_index("cronq_job_by_update", "updated_at", where=AT_REST),
    partial_index("cronq_job_by_tenant", "tenant", "planned_at", where="tenant IS NOT NULL"),
    partial_index("cronq_job_of_backfill", "item", "state", where="trigger = 'backfill'"),
    partial_index("cronq_job_dead", "dead_at", where="dead_at IS NOT NULL"),
    partial_index("cronq_job_uncopied", "id", where=UNCOPIED),
    partial_index("cronq_job_of_batch", "batch_id", "state", "held_at", where=UNFINISHED_ITEM),
    partial_index("cronq_job_batch_head", "schedule_id", "fire_time", where=BATCH_HEAD),
    partial_index("cronq_job_awaiting", "fire_time", where=AWAITING),
)

attempt = Table(
    "cronq_attempt",
    metadata,
    Column("job_id", String(36), ForeignKey("cronq_job.id", ondelete="CASCADE"), primary_key=True),
    Column("token", String(36), primary_key=True, comment="of its lease"),
    Column("number", Integer, nullable=False, comment="counts from 1"),
    Column("worker", String(255)),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("kind", String(32), comment="of a failure: what sort"),
    Column("error", Text),
    sqlite_with_rowid=False,  # one tree to write to, not two
)

once = Table(
    "cronq_once",
    metadata,
    Column("job_id", String(36), ForeignKey("cronq_job.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(255), primary_key=True, comment="what the body calls it"),
    Column("value", JSON, comment="what it returned"),
    Column("at", UtcDateTime, nullable=False),
)

dead_message = Table(
    "cronq_dead_message",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("dead_at", UtcDateTime, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("error", Text, nullable=False),
    Column("worker", String(255)),
    Column("task", String(255), comment="what its headers name"),
    Column("message_id", String(255), comment="what its headers name"),
    Column("exchange", String(255), nullable=False),
    Column("routing_key", String(255), nullable=False),
    Column("content_type", String(255)),
    Column("content_encoding", String(255)),
    Column("headers", JSON, nullable=False),
    Column("priority", Integer),
    Column("body_bytes", Integer, nullable=False),
    Column("copied_at", UtcDateTime, comment="when it was put into the dead-letter queue"),
    Column("wish", String(8), comment="retry or discard: what an operator asked for, until it is done"),
    Column("body", Text, nullable=False, comment="base64, the beginning of it if it is large"),
    Index("cronq_dead_message_by_time", "dead_at"),
    partial_index("cronq_dead_message_open", "dead_at", where="copied_at IS NULL OR wish IS NOT NULL"),
)
