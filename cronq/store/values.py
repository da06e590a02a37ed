"""Which faults of a statement are about its values? Those that no second try could mend."""

from sqlalchemy.exc import DataError, InterfaceError, OperationalError

BadValue = DataError
"""A value that the database cannot store, such as a text with a zero byte in PostgreSQL."""

OUTAGES = (OperationalError, InterfaceError)
"""The database is away or busy; see `is_outage`."""
