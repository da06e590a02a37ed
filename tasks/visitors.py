"""People who use the site, made up: so that all systems have something to do on a developer's machine.

Their numbers are bounded: there are never more than so many customers, and what they leave behind is what
housekeeping cleans up. The same minute brings the same people, however often it is run.
"""

import math
import os
import random
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery import shared_task

from cronq import current_job, enqueue
from tasks.billing import open_billing
from tasks.housekeeping import open_shop
from tasks.ranking import FEATURES, open_feed

IMPRESSIONS = 100
"""How many posts are shown in a minute."""
SUBSCRIPTIONS = 20
VIDEO_EVERY_MINUTES = 10
REPOSITORIES = ("kettle", "lamp", "spoon")
TASTE = (2.0, -1.0, 1.5, 0.5, 1.0, -1.5)
"""What makes people click, one weight for each of `FEATURES` and a bias; it turns slowly."""


@shared_task(name="tasks.visit")  # type: ignore[untyped-decorator]
def visit() -> dict[str, Any]:
    """Let people come for a minute: they look at posts, subscribe, log in, leave, and upload a video."""
    job = current_job()
    now = (datetime.now(UTC) if job is None or job.fire_time is None else job.fire_time).replace(second=0)
    clicks = look_at_posts(now)
    subscribe(now)
    come_and_go(now)
    start_repositories()
    if now.minute % VIDEO_EVERY_MINUTES == 0:
        enqueue("tasks.transcode", None, ["240p"], dedup_key=f"upload {now.isoformat()}")
    return {"impressions": IMPRESSIONS, "clicks": clicks}


def look_at_posts(now: datetime) -> int:
    """Write down what was shown and clicked; return the number of clicks."""
    chance = random.Random(now.isoformat())  # noqa: S311 - made-up people
    turn = math.sin(now.timestamp() / 86_400)
    rows = []
    for number in range(IMPRESSIONS):
        features = (
            chance.random(),
            chance.expovariate(2),
            chance.random(),
            float(chance.random() < 0.3),  # noqa: PLR2004 - a third of them or so
            float(chance.random() < 0.5),  # noqa: PLR2004 - half of them
        )
        liking = TASTE[-1] + sum(
            weight * value * (1 + 0.5 * turn) for weight, value in zip(TASTE, features, strict=False)
        )
        clicked = int(chance.random() < 1 / (1 + math.exp(-liking)))
        rows.append((f"{now.isoformat()} {number}", *features, clicked))
    marks = ", ".join("?" * len(rows[0]))
    with open_feed() as feed:
        feed.executemany(
            f"INSERT INTO impression (shown, {', '.join(FEATURES)}, clicked) VALUES ({marks}) "  # noqa: S608 - our own names
            "ON CONFLICT DO NOTHING",
            rows,
        )
    return sum(row[-1] for row in rows)


def subscribe(now: datetime) -> None:
    """Let one person begin a trial that is over in a minute, while there are not too many."""
    with open_billing() as billing:
        there = billing.execute("SELECT count(*) FROM subscription").fetchone()[0]
        if there < SUBSCRIPTIONS:
            billing.execute(
                "INSERT INTO subscription (id, amount_cents, state, renews_at) VALUES (?, 990, 'trial', ?) "
                "ON CONFLICT DO NOTHING",
                (f"sub-{now:%Y%m%dT%H%M}", (now + timedelta(minutes=1)).isoformat()),
            )


def come_and_go(now: datetime) -> None:
    """Leave sessions that are over soon, and a customer who wanted to be forgotten long ago."""
    with closing(open_shop()) as shop:
        for number in range(5):
            over = (now + timedelta(minutes=5 + number)).isoformat()
            shop.execute(
                "INSERT INTO session VALUES (?, ?) ON CONFLICT DO NOTHING",
                (f"{now.isoformat()} {number}", over),
            )
        gone = (now - timedelta(days=31)).isoformat()
        shop.execute("INSERT INTO customer VALUES (?, ?) ON CONFLICT DO NOTHING", (now.isoformat(), gone))


def start_repositories() -> None:
    """Make a few repositories with something to tidy up, once."""
    folder = Path(os.environ.get("REPOSITORIES_DIR", "data/repositories"))
    for name in REPOSITORIES:
        if (folder / name).exists():
            continue
        (folder / name).mkdir(parents=True)
        who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
        for argv in (
            ("init", "-q"),
            *((*who, "commit", "-q", "--allow-empty", "-m", "more") for _ in "12345"),
        ):
            subprocess.run(["git", "-C", str(folder / name), *argv], check=True, capture_output=True)  # noqa: S603, S607
