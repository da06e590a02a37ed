"""The daily report of one tenant: what it sold, as a page with a chart and as a table for a spreadsheet."""

import csv
import io
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from html import escape

from celery import shared_task

from cronq import current_job, progress
from tasks.files import name_for, reports_dir, write_atomically
from tasks.orders import open_orders

STEPS = 5
Amounts = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Sales:
    """What a tenant sold."""

    tenant: str
    orders: int
    revenue_cents: int
    by_day: Amounts
    by_product: Amounts


@shared_task(name="tasks.daily_report")  # type: ignore[untyped-decorator]
def daily_report(tenant: str) -> dict[str, str | int]:
    """Write the report of `tenant` and say where it is."""
    progress.update(0, STEPS, "open the orders")
    with closing(open_orders()) as orders:
        progress.update(1, STEPS, "add up the orders")
        sales = read_sales(orders, tenant)
    progress.update(2, STEPS, "draw the page")
    page = html_page(sales)
    target = reports_dir() / tenant / name_for(current_job())
    html, table = target.with_suffix(".html"), target.with_suffix(".csv")
    progress.update(3, STEPS, "write the page")
    write_atomically(html, page)
    progress.update(4, STEPS, "write the table")
    write_atomically(table, csv_table(sales))
    progress.update(STEPS, STEPS, "done")
    progress.log(f"{sales.orders} orders, {money(sales.revenue_cents)}")
    return {
        "tenant": tenant,
        "rows": sales.orders,
        "html": str(html),
        "csv": str(table),
        "revenue_cents": sales.revenue_cents,
    }


def read_sales(orders: sqlite3.Connection, tenant: str) -> Sales:
    """Add up the orders of `tenant`."""
    of_tenant = "FROM orders WHERE tenant = ?"
    count, revenue = orders.execute(
        f"SELECT count(*), coalesce(sum(amount_cents), 0) {of_tenant}", (tenant,)
    ).fetchone()
    if count == 0:
        raise LookupError(f"there are no orders of a tenant {tenant!r}")
    by_day, by_product = (
        orders.execute(
            f"SELECT {column}, sum(amount_cents) {of_tenant} GROUP BY {column} ORDER BY {order}", (tenant,)
        ).fetchall()
        for column, order in (("day", "day"), ("product", "sum(amount_cents) DESC, product"))
    )
    return Sales(tenant, count, revenue, by_day, by_product)


def csv_table(sales: Sales) -> str:
    """Return revenue by day and by product as CSV."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["tenant", "by", "name", "revenue_cents"])
    table.writerows([sales.tenant, "day", *row] for row in sales.by_day)
    table.writerows([sales.tenant, "product", *row] for row in sales.by_product)
    return out.getvalue()


def html_page(sales: Sales) -> str:
    """Return the report as one page that needs no other file. It names no time: twice equals once."""
    rows = "\n".join(
        f"<tr><td>{escape(product)}</td><td>{money(cents)}</td></tr>" for product, cents in sales.by_product
    )
    name = escape(sales.tenant)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Sales of {name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
rect {{ fill: #2f6f4f }}
td {{ padding: .1rem 1.5rem .1rem 0; font-variant-numeric: tabular-nums }}
</style>
</head>
<body>
<h1>Sales of {name}</h1>
<p>{sales.orders} orders, {money(sales.revenue_cents)} in all.</p>
<h2>By day</h2>
{bar_chart(sales.by_day)}
<h2>By product</h2>
<table>
{rows}
</table>
</body>
</html>
"""


def bar_chart(amounts: Amounts, width: int = 720, height: int = 200) -> str:
    """Return the amounts as bars in an inline SVG; each says what it is when pointed at."""
    highest = max((cents for _, cents in amounts), default=0) or 1
    slot = width / max(len(amounts), 1)
    bars = []
    for index, (name, cents) in enumerate(amounts):
        tall = height * cents / highest
        bars.append(
            f'<rect x="{index * slot:.2f}" y="{height - tall:.2f}" width="{slot * 0.8:.2f}" '
            f'height="{tall:.2f}"><title>{escape(name)}: {money(cents)}</title></rect>'
        )
    label = f"{len(amounts)} bars, the highest {money(highest)}"
    body = "\n".join(bars)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n{body}\n</svg>'


def money(cents: int) -> str:
    """Return an amount as people write it."""
    return f"{cents // 100:,}.{cents % 100:02} €"
