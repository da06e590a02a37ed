import csv
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import pytest

from tasks.orders import ORDERS_PER_TENANT, generate_orders, open_orders
from tasks.reports import Sales, bar_chart, csv_table, daily_report, html_page, money, read_sales
from tests.unit.tasks.conftest import job


def test_report_adds_up_the_tenants_own_rows(folders: Path) -> None:
    expected = sum(order[4] for order in generate_orders(("acme",)))
    with job():
        result = daily_report("acme")
    html, table = (folders / "reports" / "acme" / f"2026-03-29T01-30-00Z.{kind}" for kind in ("html", "csv"))
    assert result == {
        "tenant": "acme",
        "rows": ORDERS_PER_TENANT,
        "html": str(html),
        "csv": str(table),
        "revenue_cents": expected,
    }
    rows = list(csv.DictReader(table.open()))
    for kind in ("day", "product"):
        assert sum(int(row["revenue_cents"]) for row in rows if row["by"] == kind) == expected
    assert money(expected) in html.read_text()


def test_report_made_twice_is_one_report(folders: Path) -> None:
    made = []
    for attempt in (1, 2):
        with job(attempt=attempt):
            daily_report("acme")
        made.append({one.name: one.read_bytes() for one in (folders / "reports" / "acme").iterdir()})
    assert made[0] == made[1]
    assert sorted(made[0]) == ["2026-03-29T01-30-00Z.csv", "2026-03-29T01-30-00Z.html"]


def test_report_on_demand_is_named_after_its_job() -> None:
    with job(fire_time=None):
        assert str(daily_report("acme")["html"]).endswith("/acme/job-1.html")


def test_report_says_how_far_it_is() -> None:
    with job() as seen:
        daily_report("acme")
    assert [one["steps_completed"] for one in seen] == [0, 1, 2, 3, 4, 5]
    assert {one["steps_total"] for one in seen} == {5}
    assert seen[1]["current_step"] == "add up the orders"
    assert seen[-1]["progress"] == 100


def test_report_of_an_unknown_tenant_writes_nothing(folders: Path) -> None:
    with pytest.raises(LookupError, match=r"no orders of a tenant '\.\./etc'"):
        daily_report("../etc")
    assert not (folders / "reports").exists()


def test_every_tenant_has_sales_on_most_days() -> None:
    with closing(open_orders()) as orders:
        sales = read_sales(orders, "tenant-200")
    assert len(sales.by_day) > 80
    assert [cents for _, cents in sales.by_product] == sorted((c for _, c in sales.by_product), reverse=True)


def test_chart_has_one_bar_an_amount_and_the_highest_fills_it() -> None:
    chart = ET.fromstring(bar_chart([("a", 50), ("b", 100), ("c", 0)], width=300, height=200))
    bars = chart.findall("rect")
    assert [float(bar.attrib["height"]) for bar in bars] == [100, 200, 0]
    assert [float(bar.attrib["x"]) for bar in bars] == [0, 100, 200]


def test_chart_of_nothing_is_empty() -> None:
    assert ET.fromstring(bar_chart([])).findall("rect") == []


def test_names_cannot_break_the_page() -> None:
    sales = Sales("<b>&", 1, 5, [("<i>", 5)], [("<u>", 5)])
    page = html_page(sales)
    assert not any(tag in page for tag in ("<b>", "<i>", "<u>"))
    assert "<b>&,day,<i>,5" in csv_table(sales)


def test_money_is_written_for_people() -> None:
    assert [money(cents) for cents in (0, 5, 123_456_789)] == ["0.00 €", "0.05 €", "1,234,567.89 €"]
