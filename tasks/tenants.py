"""Ten thousand tenants, each with its own time zone: who gets a report when, and the summary of all."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from celery import shared_task

from cronq import progress
from tasks.files import reports_dir, write_atomically
from tasks.orders import TENANTS

ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")


def in_zone(zone: str) -> Iterator[dict[str, str]]:
    """Yield the tenants whose midnight is that of `zone`: each is one job of the fan-out.

    Read row by row, from wherever your tenants are: a million of them never stand in memory.
    """
    for tenant, its_zone, *webhook in all_tenants():
        if its_zone == zone:
            told = {"callback_url": webhook[0]} if any(webhook) else {}
            yield {"item": tenant, "tenant": tenant, **told}


def all_tenants() -> Iterator[list[str]]:
    """Yield tenant, zone and, if it wants to be told of its report, the address of its webhook.

    They are the rows of `TENANTS_FILE`, or those of the data set, spread over the world.
    """
    path = os.environ.get("TENANTS_FILE")
    if path is None:
        yield from ([tenant, ZONES[number % len(ZONES)]] for number, tenant in enumerate(TENANTS))
        return
    with Path(path).open(newline="", encoding="utf-8") as table:
        yield from csv.reader(table)


@shared_task(name="tasks.reports_summary")  # type: ignore[untyped-decorator]
def reports_summary(batch: dict[str, Any]) -> dict[str, Any]:
    """Write down how the reports of one midnight went; it runs once, when the last of them has ended."""
    name = f"{batch['schedule']}-{batch['fire_time']}".replace("/", "-").replace(":", "-")
    path = reports_dir() / "summary" / f"{name}.json"
    write_atomically(path, json.dumps(batch, indent=2))
    progress.log(f"{batch['completed']} of {batch['total']} reports were made; {batch['failed']} failed")
    return {"summary": str(path)}
