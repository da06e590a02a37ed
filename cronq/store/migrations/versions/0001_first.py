"""The first schema."""

import sqlalchemy as sa
from alembic import op

from cronq.store.tables import UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "cronq_backfill",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("schedule_id", sa.String(length=36), nullable=False),
        sa.Column("schedule_name", sa.String(length=255), nullable=False),
        sa.Column("range_start", UtcDateTime(), nullable=False, comment="inclusive"),
        sa.Column("range_end", UtcDateTime(), nullable=False, comment="exclusive"),
        sa.Column(
            "concurrency",
            sa.Integer(),
            nullable=False,
            comment="how many of its jobs are under way at a time",
        ),
        sa.Column("newest_first", sa.Boolean(), nullable=False),
        sa.Column("again", sa.Boolean(), nullable=False, comment="also what has completed"),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=True, comment="of PAUSED by cronq itself: why"),
        sa.Column(
            "position", UtcDateTime(), nullable=True, comment="where it goes on; null: the range is through"
        ),
        sa.Column("fires", sa.Integer(), nullable=False, comment="fire times in the range"),
        sa.Column(
            "planned", sa.Integer(), server_default="0", nullable=False, comment="jobs it has made so far"
        ),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "cronq_backfill_running",
        "cronq_backfill",
        ["id"],
        unique=False,
        postgresql_where=sa.text("state = 'RUNNING'"),
        sqlite_where=sa.text("state = 'RUNNING'"),
    )
    op.create_table(
        "cronq_batch",
        sa.Column(
            "id", sa.String(length=36), nullable=False, comment="the id of the job that finds its items"
        ),
        sa.Column("schedule_id", sa.String(length=36), nullable=False),
        sa.Column("schedule_name", sa.String(length=255), nullable=False),
        sa.Column("fire_time", UtcDateTime(), nullable=True, comment="null: it was asked for by hand"),
        sa.Column("task", sa.String(length=255), nullable=False),
        sa.Column(
            "total", sa.Integer(), server_default="0", nullable=False, comment="how many items were found"
        ),
        sa.Column(
            "on_complete",
            sa.String(length=255),
            nullable=True,
            comment="the task that runs once when all items are at an end",
        ),
        sa.Column(
            "callback_url", sa.Text(), nullable=True, comment="whom to tell when all items are at an end"
        ),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("paused_at", UtcDateTime(), nullable=True),
        sa.Column("cancelled_at", UtcDateTime(), nullable=True),
        sa.Column(
            "ended_at",
            UtcDateTime(),
            nullable=True,
            comment="when all items were at an end; null: they are not",
        ),
        sa.Column(
            "counts", sa.JSON(), nullable=True, comment="of an ended one: how many items ended in each state"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("cronq_batch_by_time", "cronq_batch", ["created_at", "id"], unique=False)
    op.create_index(
        "cronq_batch_open",
        "cronq_batch",
        ["schedule_id"],
        unique=False,
        postgresql_where=sa.text("ended_at IS NULL"),
        sqlite_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "cronq_breaker",
        sa.Column("key", sa.String(length=300), nullable=False, comment="dependency:<name>"),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False, comment="in a row"),
        sa.Column(
            "trials", sa.Integer(), nullable=False, comment="half open: how many jobs may run at a time"
        ),
        sa.Column("passed", sa.Integer(), nullable=False, comment="of these, how many went well"),
        sa.Column("wait_s", sa.Float(), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=True, comment="open: when the next job may try"),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("since", UtcDateTime(), nullable=False, comment="of its state"),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "cronq_dead_message",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("dead_at", UtcDateTime(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("worker", sa.String(length=255), nullable=True),
        sa.Column("task", sa.String(length=255), nullable=True, comment="what its headers name"),
        sa.Column("message_id", sa.String(length=255), nullable=True, comment="what its headers name"),
        sa.Column("exchange", sa.String(length=255), nullable=False),
        sa.Column("routing_key", sa.String(length=255), nullable=False),
        sa.Column("content_type", sa.String(length=255), nullable=True),
        sa.Column("content_encoding", sa.String(length=255), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("body_bytes", sa.Integer(), nullable=False),
        sa.Column(
            "copied_at", UtcDateTime(), nullable=True, comment="when it was put into the dead-letter queue"
        ),
        sa.Column(
            "wish",
            sa.String(length=8),
            nullable=True,
            comment="retry or discard: what an operator asked for, until it is done",
        ),
        sa.Column("body", sa.Text(), nullable=False, comment="base64, the beginning of it if it is large"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("cronq_dead_message_by_time", "cronq_dead_message", ["dead_at"], unique=False)
    op.create_index(
        "cronq_dead_message_open",
        "cronq_dead_message",
        ["dead_at"],
        unique=False,
        postgresql_where=sa.text("copied_at IS NULL OR wish IS NOT NULL"),
        sqlite_where=sa.text("copied_at IS NULL OR wish IS NOT NULL"),
    )
    op.create_table(
        "cronq_deploy",
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.Column(
            "stamp",
            sa.String(length=255),
            nullable=False,
            comment="the newest deploy whose schedules were taken over",
        ),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "cronq_job",
        sa.Column("id", sa.String(length=36), nullable=False, comment="the dedup id, and the Celery task id"),
        sa.Column("schedule_id", sa.String(length=36), nullable=True),
        sa.Column("schedule_name", sa.String(length=255), nullable=True),
        sa.Column("schedule_version", sa.Integer(), nullable=True),
        sa.Column("fire_time", UtcDateTime(), nullable=True),
        sa.Column("item", sa.String(length=255), server_default="", nullable=False),
        sa.Column(
            "batch_id",
            sa.String(length=36),
            nullable=True,
            comment="of a fan-out: the job that finds its items; its own id, or theirs",
        ),
        sa.Column("trigger", sa.String(length=16), nullable=False),
        sa.Column("task", sa.String(length=255), nullable=False),
        sa.Column("args", sa.JSON(), nullable=False),
        sa.Column("kwargs", sa.JSON(), nullable=False),
        sa.Column(
            "queue",
            sa.String(length=255),
            nullable=True,
            comment="of a job with needs: decided anew whenever it is published",
        ),
        sa.Column(
            "needs",
            sa.String(length=255),
            nullable=True,
            comment="the kind of machine and the places: cpu@eu-west.a,eu-west+30",
        ),
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("tenant", sa.String(length=255), nullable=True),
        sa.Column("overlap", sa.String(length=24), nullable=False),
        sa.Column(
            "exclusive",
            sa.Boolean(),
            nullable=False,
            comment="may not run beside another job of its schedule",
        ),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=24), nullable=True, comment="of SKIPPED: why"),
        sa.Column(
            "waits_for",
            sa.String(length=300),
            nullable=True,
            comment="the limit that a due job waits for room under",
        ),
        sa.Column(
            "coalesced_into",
            UtcDateTime(),
            nullable=True,
            comment="of SKIPPED by coalescing: the fire time that runs instead",
        ),
        sa.Column(
            "due_at", UtcDateTime(), nullable=False, comment="fire time and jitter, or when the retry is due"
        ),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=True, comment="null: the task's own"),
        sa.Column(
            "attempts_before",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="up to an operator's retry",
        ),
        sa.Column("crashes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_token", sa.String(length=36), nullable=True),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("worker", sa.String(length=255), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=True, comment="of its last failure: what sort"),
        sa.Column("cancel_requested_at", UtcDateTime(), nullable=True),
        sa.Column(
            "callback_url",
            sa.Text(),
            nullable=True,
            comment="whom to tell of its end: a trigger adds a job that does",
        ),
        sa.Column("dead_at", UtcDateTime(), nullable=True, comment="when it became a dead letter"),
        sa.Column(
            "copied_at",
            UtcDateTime(),
            nullable=True,
            comment="when its message was put into the dead-letter queue",
        ),
        sa.Column(
            "held_at",
            UtcDateTime(),
            nullable=True,
            comment="since when it waits for its batch to resume, or for other schedules",
        ),
        sa.Column(
            "awaited",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="the leader is told of its end",
        ),
        sa.Column("planned_at", UtcDateTime(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=True),
        sa.Column("publishes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("schedule_id", "fire_time", "item", name="cronq_job_one_per_fire_time"),
    )
    op.create_index(
        "cronq_job_active",
        "cronq_job",
        ["schedule_id"],
        unique=False,
        postgresql_where=sa.text(
            "state IN ('PENDING', 'RUNNING', 'RETRYING') AND (batch_id IS NULL OR batch_id = id)"
        ),
        sqlite_where=sa.text(
            "state IN ('PENDING', 'RUNNING', 'RETRYING') AND (batch_id IS NULL OR batch_id = id)"
        ),
    )
    op.create_index(
        "cronq_job_awaiting",
        "cronq_job",
        ["fire_time"],
        unique=False,
        postgresql_where=sa.text(
            "held_at IS NOT NULL AND state = 'SCHEDULED' AND (batch_id IS NULL OR batch_id = id)"
        ),
        sqlite_where=sa.text(
            "held_at IS NOT NULL AND state = 'SCHEDULED' AND (batch_id IS NULL OR batch_id = id)"
        ),
    )
    op.create_index(
        "cronq_job_batch_head",
        "cronq_job",
        ["schedule_id", "fire_time"],
        unique=False,
        postgresql_where=sa.text("batch_id = id"),
        sqlite_where=sa.text("batch_id = id"),
    )
    op.create_index("cronq_job_by_state", "cronq_job", ["state", "planned_at"], unique=False)
    op.create_index(
        "cronq_job_by_tenant",
        "cronq_job",
        ["tenant", "planned_at"],
        unique=False,
        postgresql_where=sa.text("tenant IS NOT NULL"),
        sqlite_where=sa.text("tenant IS NOT NULL"),
    )
    op.create_index("cronq_job_by_time", "cronq_job", ["planned_at", "id"], unique=False)
    op.create_index(
        "cronq_job_by_update",
        "cronq_job",
        ["updated_at"],
        unique=False,
        postgresql_where=sa.text("state <> 'RUNNING'"),
        sqlite_where=sa.text("state <> 'RUNNING'"),
    )
    op.create_index(
        "cronq_job_dead",
        "cronq_job",
        ["dead_at"],
        unique=False,
        postgresql_where=sa.text("dead_at IS NOT NULL"),
        sqlite_where=sa.text("dead_at IS NOT NULL"),
    )
    op.create_index(
        "cronq_job_for_room",
        "cronq_job",
        ["task", "tenant", "queue", "due_at"],
        unique=False,
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
    )
    op.create_index(
        "cronq_job_for_room_by_schedule",
        "cronq_job",
        ["schedule_id"],
        unique=False,
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
    )
    op.create_index(
        "cronq_job_foreign",
        "cronq_job",
        ["due_at", "id"],
        unique=False,
        postgresql_where=sa.text(
            "published_at IS NULL AND held_at IS NULL AND waits_for IS NULL AND (state = 'RETRYING' OR (state = 'SCHEDULED' AND (attempts > 0 OR item <> '' OR trigger NOT IN ('schedule', 'catch_up'))))"
        ),
        sqlite_where=sa.text(
            "published_at IS NULL AND held_at IS NULL AND waits_for IS NULL AND (state = 'RETRYING' OR (state = 'SCHEDULED' AND (attempts > 0 OR item <> '' OR trigger NOT IN ('schedule', 'catch_up'))))"
        ),
    )
    op.create_index(
        "cronq_job_leased",
        "cronq_job",
        ["lease_until"],
        unique=False,
        postgresql_where=sa.text("state = 'RUNNING'"),
        sqlite_where=sa.text("state = 'RUNNING'"),
    )
    op.create_index(
        "cronq_job_of_backfill",
        "cronq_job",
        ["item", "state"],
        unique=False,
        postgresql_where=sa.text("trigger = 'backfill'"),
        sqlite_where=sa.text("trigger = 'backfill'"),
    )
    op.create_index(
        "cronq_job_of_batch",
        "cronq_job",
        ["batch_id", "state", "held_at"],
        unique=False,
        postgresql_where=sa.text("batch_id IS NOT NULL AND state <> 'COMPLETED'"),
        sqlite_where=sa.text("batch_id IS NOT NULL AND state <> 'COMPLETED'"),
    )
    op.create_index(
        "cronq_job_one_running_per_schedule",
        "cronq_job",
        ["schedule_id"],
        unique=True,
        postgresql_where=sa.text("exclusive AND state = 'RUNNING'"),
        sqlite_where=sa.text("exclusive AND state = 'RUNNING'"),
    )
    op.create_index(
        "cronq_job_placed",
        "cronq_job",
        ["needs", "queue"],
        unique=False,
        postgresql_where=sa.text(
            "needs IS NOT NULL AND state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "needs IS NOT NULL AND state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"
        ),
    )
    op.create_index(
        "cronq_job_published",
        "cronq_job",
        ["published_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"),
        sqlite_where=sa.text("state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"),
    )
    op.create_index(
        "cronq_job_uncopied",
        "cronq_job",
        ["id"],
        unique=False,
        postgresql_where=sa.text("(dead_at IS NULL) <> (copied_at IS NULL)"),
        sqlite_where=sa.text("(dead_at IS NULL) <> (copied_at IS NULL)"),
    )
    op.create_index(
        "cronq_job_waiting",
        "cronq_job",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NULL"
        ),
    )
    op.create_table(
        "cronq_leader",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "term",
            sa.BigInteger(),
            nullable=False,
            comment="grows with every change of leader; fences its writes",
        ),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("shard"),
    )
    op.create_table(
        "cronq_limit",
        sa.Column(
            "key",
            sa.String(length=300),
            nullable=False,
            comment="tenant, queue:mail, dependency:payments, tier:gold",
        ),
        sa.Column(
            "source",
            sa.String(length=255),
            nullable=False,
            comment="code:<app>: who declares it; by hand: an operator",
        ),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("key", "source"),
    )
    op.create_table(
        "cronq_schedule",
        sa.Column("id", sa.String(length=36), nullable=False, comment="uuid5 of the name"),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column(
            "source", sa.String(length=255), nullable=False, comment="code:<app>, or api: who may change it"
        ),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=255), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False, comment="the Schedule value"),
        sa.Column(
            "next_fire_at",
            UtcDateTime(),
            nullable=True,
            comment="the first fire time without a disposition; null: none to come",
        ),
        sa.Column(
            "delay_s",
            sa.Float(),
            nullable=True,
            comment="fixed delay: seconds from the end of a job to the next fire time",
        ),
        sa.Column("paused_at", UtcDateTime(), nullable=True),
        sa.Column("pause_note", sa.Text(), nullable=True),
        sa.Column(
            "resumed_at",
            UtcDateTime(),
            nullable=True,
            comment="failures before it do not count towards pause_after",
        ),
        sa.Column(
            "retired_at",
            UtcDateTime(),
            nullable=True,
            comment="no longer declared by its source; kept for its history",
        ),
        sa.Column(
            "fault",
            sa.Text(),
            nullable=True,
            comment="why it could not be planned; the other schedules go on",
        ),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index(
        "cronq_schedule_due",
        "cronq_schedule",
        ["shard", "next_fire_at"],
        unique=False,
        postgresql_where=sa.text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
        sqlite_where=sa.text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
    )
    op.create_index(
        "cronq_schedule_waits_for_end",
        "cronq_schedule",
        ["shard"],
        unique=False,
        postgresql_where=sa.text("delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL"),
        sqlite_where=sa.text("delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL"),
    )
    op.create_table(
        "cronq_schedule_version",
        sa.Column("schedule_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("on_complete", sa.Text(), nullable=True),
        sa.Column("callback_url", sa.Text(), nullable=True),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", "version"),
    )
    op.create_table(
        "cronq_token",
        sa.Column(
            "id",
            sa.String(length=16),
            nullable=False,
            comment="the first part of the token, which is no secret",
        ),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False, comment="SHA-256 of the secret part"),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column(
            "revoked_at", UtcDateTime(), nullable=True, comment="kept, so that its name stays in the records"
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "cronq_attempt",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False, comment="of its lease"),
        sa.Column("number", sa.Integer(), nullable=False, comment="counts from 1"),
        sa.Column("worker", sa.String(length=255), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=True, comment="of a failure: what sort"),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["cronq_job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "token"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "cronq_once",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False, comment="what the body calls it"),
        sa.Column("value", sa.JSON(), nullable=True, comment="what it returned"),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["cronq_job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "key"),
    )


def downgrade() -> None:
    op.drop_table("cronq_once")
    op.drop_table("cronq_attempt")
    op.drop_table("cronq_token")
    op.drop_table("cronq_schedule_version")
    op.drop_index(
        "cronq_schedule_waits_for_end",
        table_name="cronq_schedule",
        postgresql_where=sa.text("delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL"),
        sqlite_where=sa.text("delay_s IS NOT NULL AND next_fire_at IS NULL AND retired_at IS NULL"),
    )
    op.drop_index(
        "cronq_schedule_due",
        table_name="cronq_schedule",
        postgresql_where=sa.text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
        sqlite_where=sa.text("next_fire_at IS NOT NULL AND paused_at IS NULL AND retired_at IS NULL"),
    )
    op.drop_table("cronq_schedule")
    op.drop_table("cronq_limit")
    op.drop_table("cronq_leader")
    op.drop_index(
        "cronq_job_waiting",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NULL"
        ),
    )
    op.drop_index(
        "cronq_job_uncopied",
        table_name="cronq_job",
        postgresql_where=sa.text("(dead_at IS NULL) <> (copied_at IS NULL)"),
        sqlite_where=sa.text("(dead_at IS NULL) <> (copied_at IS NULL)"),
    )
    op.drop_index(
        "cronq_job_published",
        table_name="cronq_job",
        postgresql_where=sa.text("state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"),
        sqlite_where=sa.text("state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"),
    )
    op.drop_index(
        "cronq_job_placed",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "needs IS NOT NULL AND state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "needs IS NOT NULL AND state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL"
        ),
    )
    op.drop_index(
        "cronq_job_one_running_per_schedule",
        table_name="cronq_job",
        postgresql_where=sa.text("exclusive AND state = 'RUNNING'"),
        sqlite_where=sa.text("exclusive AND state = 'RUNNING'"),
    )
    op.drop_index(
        "cronq_job_of_batch",
        table_name="cronq_job",
        postgresql_where=sa.text("batch_id IS NOT NULL AND state <> 'COMPLETED'"),
        sqlite_where=sa.text("batch_id IS NOT NULL AND state <> 'COMPLETED'"),
    )
    op.drop_index(
        "cronq_job_of_backfill",
        table_name="cronq_job",
        postgresql_where=sa.text("trigger = 'backfill'"),
        sqlite_where=sa.text("trigger = 'backfill'"),
    )
    op.drop_index(
        "cronq_job_leased",
        table_name="cronq_job",
        postgresql_where=sa.text("state = 'RUNNING'"),
        sqlite_where=sa.text("state = 'RUNNING'"),
    )
    op.drop_index(
        "cronq_job_foreign",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "published_at IS NULL AND held_at IS NULL AND waits_for IS NULL AND (state = 'RETRYING' OR (state = 'SCHEDULED' AND (attempts > 0 OR item <> '' OR trigger NOT IN ('schedule', 'catch_up'))))"
        ),
        sqlite_where=sa.text(
            "published_at IS NULL AND held_at IS NULL AND waits_for IS NULL AND (state = 'RETRYING' OR (state = 'SCHEDULED' AND (attempts > 0 OR item <> '' OR trigger NOT IN ('schedule', 'catch_up'))))"
        ),
    )
    op.drop_index(
        "cronq_job_for_room_by_schedule",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
    )
    op.drop_index(
        "cronq_job_for_room",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
        sqlite_where=sa.text(
            "state IN ('SCHEDULED', 'RETRYING') AND published_at IS NULL AND held_at IS NULL AND waits_for IS NOT NULL"
        ),
    )
    op.drop_index(
        "cronq_job_dead",
        table_name="cronq_job",
        postgresql_where=sa.text("dead_at IS NOT NULL"),
        sqlite_where=sa.text("dead_at IS NOT NULL"),
    )
    op.drop_index(
        "cronq_job_by_update",
        table_name="cronq_job",
        postgresql_where=sa.text("state <> 'RUNNING'"),
        sqlite_where=sa.text("state <> 'RUNNING'"),
    )
    op.drop_index("cronq_job_by_time", table_name="cronq_job")
    op.drop_index(
        "cronq_job_by_tenant",
        table_name="cronq_job",
        postgresql_where=sa.text("tenant IS NOT NULL"),
        sqlite_where=sa.text("tenant IS NOT NULL"),
    )
    op.drop_index("cronq_job_by_state", table_name="cronq_job")
    op.drop_index(
        "cronq_job_batch_head",
        table_name="cronq_job",
        postgresql_where=sa.text("batch_id = id"),
        sqlite_where=sa.text("batch_id = id"),
    )
    op.drop_index(
        "cronq_job_awaiting",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "held_at IS NOT NULL AND state = 'SCHEDULED' AND (batch_id IS NULL OR batch_id = id)"
        ),
        sqlite_where=sa.text(
            "held_at IS NOT NULL AND state = 'SCHEDULED' AND (batch_id IS NULL OR batch_id = id)"
        ),
    )
    op.drop_index(
        "cronq_job_active",
        table_name="cronq_job",
        postgresql_where=sa.text(
            "state IN ('PENDING', 'RUNNING', 'RETRYING') AND (batch_id IS NULL OR batch_id = id)"
        ),
        sqlite_where=sa.text(
            "state IN ('PENDING', 'RUNNING', 'RETRYING') AND (batch_id IS NULL OR batch_id = id)"
        ),
    )
    op.drop_table("cronq_job")
    op.drop_table("cronq_deploy")
    op.drop_index(
        "cronq_dead_message_open",
        table_name="cronq_dead_message",
        postgresql_where=sa.text("copied_at IS NULL OR wish IS NOT NULL"),
        sqlite_where=sa.text("copied_at IS NULL OR wish IS NOT NULL"),
    )
    op.drop_index("cronq_dead_message_by_time", table_name="cronq_dead_message")
    op.drop_table("cronq_dead_message")
    op.drop_table("cronq_breaker")
    op.drop_index(
        "cronq_batch_open",
        table_name="cronq_batch",
        postgresql_where=sa.text("ended_at IS NULL"),
        sqlite_where=sa.text("ended_at IS NULL"),
    )
    op.drop_index("cronq_batch_by_time", table_name="cronq_batch")
    op.drop_table("cronq_batch")
    op.drop_index(
        "cronq_backfill_running",
        table_name="cronq_backfill",
        postgresql_where=sa.text("state = 'RUNNING'"),
        sqlite_where=sa.text("state = 'RUNNING'"),
    )
    op.drop_table("cronq_backfill")
