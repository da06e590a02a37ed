"""What the API needs: its tokens, and indexes along which it reads."""

import sqlalchemy as sa
from alembic import op

from cronq.store.tables import UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
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
    op.create_index("cronq_job_by_update", "cronq_job", ["updated_at"])
    op.create_index(
        "cronq_job_by_tenant",
        "cronq_job",
        ["tenant", "planned_at"],
        postgresql_where=sa.text("tenant IS NOT NULL"),
        sqlite_where=sa.text("tenant IS NOT NULL"),
    )
    op.create_index(
        "cronq_job_dead",
        "cronq_job",
        ["dead_at"],
        postgresql_where=sa.text("dead_at IS NOT NULL"),
        sqlite_where=sa.text("dead_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("cronq_job_dead", table_name="cronq_job")
    op.drop_index("cronq_job_by_tenant", table_name="cronq_job")
    op.drop_index("cronq_job_by_update", table_name="cronq_job")
    op.drop_table("cronq_token")
