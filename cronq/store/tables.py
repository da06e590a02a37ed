"""The tables. `migrations/` makes them; a test holds the two together."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from cronq.store.instants import UtcDateTime as UtcDateTime  # noqa: PLC0414 - migrations find it here

metadata = MetaData()

leader = Table(
    "cronq_leader",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column(
        "term", BigInteger, nullable=False, comment="grows with every change of leader; fences its writes"
    ),
    Column("holder", String(64), nullable=False),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("since", UtcDateTime, nullable=False),
)

_WAITS_FOR_END = text("delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL")

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
    Index(
        "cronq_schedule_waits_for_end",
        "shard",
        postgresql_where=_WAITS_FOR_END,
        sqlite_where=_WAITS_FOR_END,
    ),
    Index(
        "cronq_schedule_due",
        "shard",
        "next_fire_at",
        postgresql_where=text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
        sqlite_where=text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
    ),
)

schedule_version = Table(
    "cronq_schedule_version",
    metadata,
    Column("schedule_id", String(36), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("definition", JSON, nullable=False),
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
_OPEN_BATCH = text("ended_at IS NULL")
_TENANT = text("tenant IS NOT NULL")
_BACKFILL = text("trigger = 'backfill'")
_DEAD = text("dead_at IS NOT NULL")
UNCOPIED = "(dead_at IS NULL) <> (copied_at IS NULL)"
"""Jobs that became dead letters, or are none any more, and the broker's dead-letter queue does not say so."""
RUNNING = "state = 'RUNNING'"
AT_REST = "state <> 'RUNNING'"
"""Two halves of the jobs, each with an index of its own; a query has to say them literally to use it."""
_EXCLUSIVE = text("exclusive AND state = 'RUNNING'")

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
    Index("cronq_job_waiting", "due_at", postgresql_where=text(WAITING), sqlite_where=text(WAITING)),
    Index(
        "cronq_job_for_room",
        "task",
        "tenant",
        "queue",
        "due_at",
        postgresql_where=text(FOR_ROOM),
        sqlite_where=text(FOR_ROOM),
    ),
    Index(
        "cronq_job_for_room_by_schedule",
        "schedule_id",
        postgresql_where=text(FOR_ROOM),
        sqlite_where=text(FOR_ROOM),
    ),
    Index("cronq_job_placed", "needs", "queue", postgresql_where=text(PLACED), sqlite_where=text(PLACED)),
    Index("cronq_job_foreign", "due_at", "id", postgresql_where=text(FOREIGN), sqlite_where=text(FOREIGN)),
    Index(
        "cronq_job_active",
        "schedule_id",
        postgresql_where=text(ACTIVE_HEAD),
        sqlite_where=text(ACTIVE_HEAD),
    ),
    Index(
        "cronq_job_published",
        "published_at",
        postgresql_where=text(PUBLISHED),
        sqlite_where=text(PUBLISHED),
    ),
    Index(
        "cronq_job_leased",
        "lease_until",
        postgresql_where=text(RUNNING),
        sqlite_where=text(RUNNING),
    ),
    # Two jobs of one schedule that both got a message cannot both be claimed, unless overlap is allowed.
    Index(
        "cronq_job_one_running_per_schedule",
        "schedule_id",
        unique=True,
        postgresql_where=_EXCLUSIVE,
        sqlite_where=_EXCLUSIVE,
    ),
    Index("cronq_job_by_state", "state", "planned_at"),
    Index("cronq_job_by_time", "planned_at", "id"),
    # What changed since a moment: the event stream and the metrics read along this. Running jobs are found by
    # their leases, so that a claim and a settlement write one entry here, not four.
    Index("cronq_job_by_update", "updated_at", postgresql_where=text(AT_REST), sqlite_where=text(AT_REST)),
    Index(
        "cronq_job_by_tenant",
        "tenant",
        "planned_at",
        postgresql_where=_TENANT,
        sqlite_where=_TENANT,
    ),
    Index("cronq_job_of_backfill", "item", "state", postgresql_where=_BACKFILL, sqlite_where=_BACKFILL),
    Index("cronq_job_dead", "dead_at", postgresql_where=_DEAD, sqlite_where=_DEAD),
    Index("cronq_job_uncopied", "id", postgresql_where=text(UNCOPIED), sqlite_where=text(UNCOPIED)),
    Index(
        "cronq_job_of_batch",
        "batch_id",
        "state",
        "held_at",
        postgresql_where=text(UNFINISHED_ITEM),
        sqlite_where=text(UNFINISHED_ITEM),
    ),
    Index(
        "cronq_job_batch_head",
        "schedule_id",
        "fire_time",
        postgresql_where=text(BATCH_HEAD),
        sqlite_where=text(BATCH_HEAD),
    ),
    Index("cronq_job_awaiting", "fire_time", postgresql_where=text(AWAITING), sqlite_where=text(AWAITING)),
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
    Index("cronq_batch_open", "schedule_id", postgresql_where=_OPEN_BATCH, sqlite_where=_OPEN_BATCH),
    Index("cronq_batch_by_time", "created_at", "id"),
)

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
    Index(
        "cronq_backfill_running",
        "id",
        postgresql_where=text("state = 'RUNNING'"),
        sqlite_where=text("state = 'RUNNING'"),
    ),
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

_OPEN = text("copied_at IS NULL OR wish IS NOT NULL")

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
    Index("cronq_dead_message_open", "dead_at", postgresql_where=_OPEN, sqlite_where=_OPEN),
)

token = Table(
    "cronq_token",
    metadata,
    Column("id", String(16), primary_key=True, comment="the first part of the token, which is no secret"),
    Column("name", String(255), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("digest", String(64), nullable=False, comment="SHA-256 of the secret part"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime, comment="kept, so that its name stays in the records"),
)

breaker = Table(
    "cronq_breaker",
    metadata,
    Column("key", String(300), primary_key=True, comment="dependency:<name>"),
    Column("state", String(16), nullable=False),
    Column("failures", Integer, nullable=False, comment="in a row"),
    Column("trials", Integer, nullable=False, comment="half open: how many jobs may run at a time"),
    Column("passed", Integer, nullable=False, comment="of these, how many went well"),
    Column("wait_s", Float, nullable=False),
    Column("until", UtcDateTime, comment="open: when the next job may try"),
    Column("error", Text),
    Column("since", UtcDateTime, nullable=False, comment="of its state"),
)

limit = Table(
    "cronq_limit",
    metadata,
    Column(
        "key", String(300), primary_key=True, comment="tenant, queue:mail, dependency:payments, tier:gold"
    ),
    Column(
        "source", String(255), primary_key=True, comment="code:<app>: who declares it; by hand: an operator"
    ),
    Column("definition", JSON, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
