"""What do all tables share? The metadata, and how an index of some rows alone is said."""

from sqlalchemy import Index, MetaData, text

metadata = MetaData()


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index of the rows that are `where`, the same on both databases."""
    condition = text(where)
    return Index(name, *columns, unique=unique, postgresql_where=condition, sqlite_where=condition)
