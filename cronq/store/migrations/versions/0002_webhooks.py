"""The end of a job with a callback adds the job that tells of it: in its transaction, whoever ends it.

The end of a job that was to find a batch's items, and never began, adds the batch, which tells of its end itself.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

_ENDED = """NEW.callback_url IS NOT NULL AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL
    AND NEW.state <> 'SKIPPED'"""

_ADD = """
    INSERT INTO cronq_job (
        id, trigger, task, args, kwargs, overlap, exclusive, state, due_at, planned_at, updated_at
    ) VALUES (
        {uuid}, 'webhook', 'cronq.webhook', '[]', {kwargs}, 'allow', {false}, 'SCHEDULED',
        NEW.finished_at, NEW.finished_at, NEW.finished_at
    );
"""

_NOT_BEGUN = """NEW.batch_id = NEW.id AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL
    AND NEW.state NOT IN ('SKIPPED', 'COMPLETED')"""

_ADD_BATCH = """
    INSERT INTO cronq_batch (
        id, schedule_id, schedule_name, fire_time, task, on_complete, callback_url, created_at, cancelled_at
    ) SELECT
        NEW.id, NEW.schedule_id, NEW.schedule_name, NEW.fire_time, NEW.task, on_complete, callback_url,
        NEW.finished_at, CASE NEW.state WHEN 'CANCELLED' THEN NEW.finished_at END
    FROM cronq_schedule_version WHERE schedule_id = NEW.schedule_id AND version = NEW.schedule_version
    ON CONFLICT DO NOTHING;
"""

_UUID4_SQLITE = """lower(
    hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
    || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))
)"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        add = _ADD.format(
            uuid=_UUID4_SQLITE,
            kwargs="json_object('job_id', NEW.id, 'status', NEW.state)",
            false="0",
        )
        op.execute(
            f"CREATE TRIGGER cronq_job_webhook AFTER UPDATE OF finished_at ON cronq_job WHEN {_ENDED} "
            f"BEGIN {add} END"
        )
        op.execute(
            f"CREATE TRIGGER cronq_job_batch AFTER UPDATE OF finished_at ON cronq_job WHEN {_NOT_BEGUN} "
            f"BEGIN {_ADD_BATCH} END"
        )
        return
    add = _ADD.format(
        uuid="CAST(gen_random_uuid() AS varchar)",
        kwargs="json_build_object('job_id', NEW.id, 'status', NEW.state)",
        false="false",
    )
    op.execute(f"""
        CREATE FUNCTION cronq_job_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {add} RETURN NULL; END $$
    """)
    op.execute(f"""
        CREATE TRIGGER cronq_job_webhook AFTER UPDATE OF finished_at ON cronq_job
        FOR EACH ROW WHEN ({_ENDED}) EXECUTE FUNCTION cronq_job_webhook()
    """)
    op.execute(f"""
        CREATE FUNCTION cronq_job_batch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {_ADD_BATCH} RETURN NULL; END $$
    """)
    op.execute(f"""
        CREATE TRIGGER cronq_job_batch AFTER UPDATE OF finished_at ON cronq_job
        FOR EACH ROW WHEN ({_NOT_BEGUN}) EXECUTE FUNCTION cronq_job_batch()
    """)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER cronq_job_webhook")
        op.execute("DROP TRIGGER cronq_job_batch")
        return
    op.execute("DROP TRIGGER cronq_job_webhook ON cronq_job")
    op.execute("DROP FUNCTION cronq_job_webhook()")
    op.execute("DROP TRIGGER cronq_job_batch ON cronq_job")
    op.execute("DROP FUNCTION cronq_job_batch()")
