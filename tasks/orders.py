"""The data set: orders of many tenants over a quarter, the same on every machine."""

import fcntl
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from tasks.files import replacing

SEED = 20260101
FIRST_DAY = date(2026, 1, 1)
DAYS = 90
ORDERS_PER_TENANT = 1000
TENANTS = ("acme", "globex", "initech", "umbrella", "wonka", *(f"tenant-{n:03}" for n in range(1, 201)))
PRICES_CENTS = {"anvil": 4999, "bolt": 120, "crate": 1850, "drill": 8900, "engine": 129_900, "funnel": 640}

SCHEMA = """
CREATE TABLE orders (
  tenant TEXT NOT NULL, day TEXT NOT NULL, product TEXT NOT NULL,
  quantity INTEGER NOT NULL, amount_cents INTEGER NOT NULL
)
"""

Order = tuple[str, str, str, int, int]


def orders_path() -> Path:
    """Return where the orders are; the number is the data set's version."""
    return Path(os.environ.get("CRONQ_ORDERS_PATH", "data/orders-1.sqlite"))


def open_orders() -> sqlite3.Connection:
    """Open the orders for reading; whoever comes first makes them."""
    path = orders_path()
    if not path.exists():
        make_orders(path)
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def make_orders(path: Path) -> None:
    """Write the data set. Several workers may start at once: one makes it, the others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with replacing(path) as part:
                _fill(part)


def generate_orders(tenants: tuple[str, ...] = TENANTS) -> Iterator[Order]:
    """Yield every order, tenant by tenant: a tenant's orders depend on its name alone."""
    days = [(FIRST_DAY + timedelta(days=n)).isoformat() for n in range(DAYS)]
    products = list(PRICES_CENTS)
    for tenant in tenants:
        chance = random.Random(f"{SEED}:{tenant}")  # noqa: S311 - a data set, not a secret
        # Each tenant has favourites and a growing business, so that the charts show something.
        taste = [chance.randint(1, 9) for _ in products]
        growth = [100 + n * chance.randint(0, 3) for n in range(DAYS)]
        chosen = zip(
            chance.choices(days, growth, k=ORDERS_PER_TENANT),
            chance.choices(products, taste, k=ORDERS_PER_TENANT),
            chance.choices(range(1, 13), k=ORDERS_PER_TENANT),
            strict=True,
        )
        for day, product, quantity in chosen:
            yield tenant, day, product, quantity, quantity * PRICES_CENTS[product]


def _fill(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        # Half a file is thrown away in any case, so nothing needs to survive a crash in here.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", generate_orders())
        connection.execute("CREATE INDEX orders_by_tenant ON orders (tenant, day)")
        connection.commit()
