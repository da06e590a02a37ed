"""Alembic's entry: runs the migrations on the connection that `schema.upgrade` opened."""

from alembic import context

from cronq.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="cronq_schema",
    render_as_batch=True,
)
context.run_migrations()
