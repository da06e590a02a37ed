import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tasks.orders import ORDERS_PER_TENANT, TENANTS, generate_orders, make_orders, open_orders
from tests.support.processes import ROOT


def test_there_are_enough_orders_of_enough_tenants() -> None:
    with closing(open_orders()) as orders:
        rows, tenants = orders.execute("SELECT count(*), count(DISTINCT tenant) FROM orders").fetchone()
    assert rows >= 200_000
    assert tenants >= 200
    assert rows == len(TENANTS) * ORDERS_PER_TENANT


def test_orders_are_the_same_on_every_machine() -> None:
    first = next(generate_orders())
    assert first == ("acme", "2026-03-10", "engine", 8, 1039200)
    assert list(generate_orders(("wonka",))) == list(generate_orders(("wonka",)))
    alone = list(generate_orders(("globex",)))
    assert [order for order in generate_orders(("acme", "globex")) if order[0] == "globex"] == alone


def test_orders_can_only_be_read() -> None:
    with closing(open_orders()) as orders, pytest.raises(sqlite3.OperationalError, match="readonly"):
        orders.execute("DELETE FROM orders")


def test_several_workers_that_start_at_once_make_the_orders_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "orders.sqlite"
    program = (
        f"import pathlib, tasks.orders as o; p = pathlib.Path({str(path)!r}); o.make_orders(p); "
        "print(p.stat().st_ino)"
    )
    makers = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = {maker.communicate(timeout=60)[0] for maker in makers}
    assert [maker.returncode for maker in makers] == [0] * 4
    assert said == {f"{path.stat().st_ino}\n"}
    assert sorted(one.name for one in path.parent.iterdir()) == ["orders.lock", "orders.sqlite"]


def test_half_made_orders_are_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(_: Path) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr("tasks.orders._fill", dies)
    path = tmp_path / "orders.sqlite"
    with pytest.raises(RuntimeError, match="power cut"):
        make_orders(path)
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith("sqlite")] == []
