"""Who decides, who may ask, and how much may go on? The leader, tokens, limits and breakers."""

from sqlalchemy import JSON, BigInteger, Column, Float, Integer, String, Table, Text

from cronq.store.instants import UtcDateTime
from cronq.store.tables.base import metadata

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
