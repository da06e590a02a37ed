"""Who may use the API? A token is shown once and stored as a hash; its check leaks nothing by its time."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from cronq.errors import TokenRefused
from cronq.store.database import Database
from cronq.store.tables import token

PREFIX: Final = "cronq"


class Role(StrEnum):
    """What a token's owner may do; each role includes the ones before it."""

    VIEWER = "viewer"  #: look
    OPERATOR = "operator"  #: ask for jobs, cancel and retry them; pause, resume and trigger schedules
    EDITOR = "editor"  #: also create, change and delete schedules

    def includes(self, other: "Role") -> bool:
        """Tell whether this role may do all that `other` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Token:
    """One token as it may be shown."""

    id: str
    name: str
    role: Role
    created_at: datetime
    revoked_at: datetime | None


def create_token(database: Database, name: str, role: Role) -> str:
    """Make a token and return its text, which is never shown again."""
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = {
        "id": token_id,
        "name": name,
        "role": role.value,
        "digest": _digest(secret),
        "created_at": database.now(),
    }
    try:
        with database.begin() as connection:
            connection.execute(token.insert().values(row))
    except IntegrityError:
        raise TokenRefused(f"there is a token called {name!r} already; choose another name") from None
    return f"{PREFIX}_{token_id}_{secret}"


def check_token(database: Database, text: str) -> Token | None:
    """Return whose token `text` is, or None if it is nobody's, wrong or revoked."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    query = select(token).where(token.c.id == token_id)
    with database.autocommit() as connection:
        row = connection.execute(query).one_or_none()
    # An unknown id is compared as well, so that the time taken tells nothing about which ids exist.
    right = hmac.compare_digest(_digest(secret), row.digest if row is not None else _digest(""))
    if row is None or not right or prefix != PREFIX or row.revoked_at is not None:
        return None
    return Token(row.id, row.name, Role(row.role), row.created_at, row.revoked_at)


def any_token(database: Database) -> bool:
    """Tell whether there has ever been a token: from then on the API asks for one everywhere."""
    with database.autocommit() as connection:
        return connection.execute(select(token.c.id).limit(1)).one_or_none() is not None


def list_tokens(database: Database) -> list[Token]:
    """Return all tokens by name, the revoked ones included."""
    with database.autocommit() as connection:
        rows = connection.execute(select(token).order_by(token.c.name))
        return [Token(row.id, row.name, Role(row.role), row.created_at, row.revoked_at) for row in rows]


def revoke_token(database: Database, name: str) -> None:
    """Make a token worthless at once; raise `TokenRefused` if there is none of this name."""
    with database.begin() as connection:
        done = connection.execute(
            update(token)
            .where(token.c.name == name)
            .values(revoked_at=func.coalesce(token.c.revoked_at, database.now()))
        )
    if done.rowcount == 0:
        raise TokenRefused(f"there is no token called {name!r}; list them with: cronq token list")


def _digest(secret: str) -> str:
    # The secret has 256 random bits, so a plain hash is as good as a slow one.
    return hashlib.sha256(secret.encode()).hexdigest()
