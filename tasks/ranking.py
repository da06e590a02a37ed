"""The model that ranks the feed, trained anew each hour on what people clicked since.

A logistic regression: small enough to read, and to train in a second without any library. The model that is
served is one file; a new one takes its name when it is complete, so that whoever reads finds the old one or
the new one, never half of one, and a trainer that is killed has changed nothing.
"""

import fcntl
import json
import math
import os
import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from celery import shared_task

from cronq import current_job, progress
from tasks.databases import transaction
from tasks.files import write_atomically

FEATURES: Final = ("affinity", "age_hours", "popularity", "has_video", "same_topic")
WINDOW: Final = 20_000
"""How many of the newest impressions are learned from, and kept."""
EPOCHS: Final = 12
STEP: Final = 0.05
HELD_BACK: Final = 5
"""Each fifth impression is not learned from: the models are compared by them."""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS impression (
  id INTEGER PRIMARY KEY, shown TEXT NOT NULL UNIQUE, {" REAL NOT NULL, ".join(FEATURES)} REAL NOT NULL,
  clicked INTEGER NOT NULL
);
"""

Row = tuple[float, ...]
"""The features of one impression, as numbers about as large as 1, and whether it was clicked (0 or 1)."""


@dataclass(frozen=True, slots=True)
class Model:
    """Weights, and where they come from."""

    version: str  #: the fire time: a later one is a newer one
    trained_at: str
    impressions: int  #: how many there were to learn from
    newest: int  #: the id of the newest of them
    loss: float  #: the mean log loss over those held back; 0.69 knows nothing
    weights: tuple[float, ...]  #: one for each of `FEATURES`, and the bias

    def score(self, features: Sequence[float]) -> float:
        """Return how likely a click is, 0 to 1."""
        return _likely(self.weights, features)


def open_feed() -> AbstractContextManager[sqlite3.Connection]:
    """Lend the impressions; what was done to them is committed at the end, all or nothing."""
    return transaction("FEED_PATH", "feed.sqlite", SCHEMA)


def model_path() -> Path:
    """Return where the model is served from."""
    return Path(os.environ.get("MODEL_PATH", "data/models/feed-ranking.json"))


def served_model() -> Model | None:
    """Return the model that is served; None: none was trained yet."""
    try:
        facts = json.loads(model_path().read_text())
    except FileNotFoundError:
        return None
    return Model(**{**facts, "weights": tuple(facts["weights"])})


def rank(model: Model, posts: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the names of the posts, the one most likely to be clicked first."""
    return sorted(posts, key=lambda name: model.score(posts[name]), reverse=True)


@shared_task(name="tasks.refresh_ranking")  # type: ignore[untyped-decorator]
def refresh_ranking() -> dict[str, Any]:
    """Train on the newest impressions, starting from the served model, and serve the result."""
    job = current_job()
    moment = datetime.now(UTC) if job is None or job.fire_time is None else job.fire_time
    before = served_model()
    with open_feed() as feed:
        newest, rows = read_rows(feed)
    if not rows:
        return {"served": False, "why": "nobody has seen anything yet"}
    learned = [row for number, row in enumerate(rows) if number % HELD_BACK]
    held_back = rows[::HELD_BACK]
    weights = train(before.weights if before else (0.0,) * (len(FEATURES) + 1), learned)
    progress.update(EPOCHS, EPOCHS, "serve it")
    loss = log_loss(weights, held_back)
    model = Model(
        version=moment.astimezone(UTC).isoformat(),
        trained_at=datetime.now(UTC).isoformat(),
        impressions=len(rows),
        newest=newest,
        loss=round(loss, 4),
        weights=weights,
    )
    served = serve(model)
    with open_feed() as feed:
        feed.execute("DELETE FROM impression WHERE id <= ?", (newest - WINDOW,))
    known = "" if before is None else f"; the model before has {log_loss(before.weights, held_back):.4f} now"
    progress.log(f"log loss {loss:.4f} over {len(held_back)} impressions that were held back{known}")
    return {"served": served, "version": model.version, "impressions": len(rows), "loss": model.loss}


def read_rows(feed: sqlite3.Connection) -> tuple[int, list[Row]]:
    """Return the id of the newest impression, and the newest ones in the order in which they were shown."""
    columns = ", ".join(FEATURES)
    found = feed.execute(
        f"SELECT id, {columns}, clicked FROM impression ORDER BY id DESC LIMIT {WINDOW}"  # noqa: S608 - our own names
    ).fetchall()
    return (found[0][0] if found else 0), [row[1:] for row in reversed(found)]


def train(weights: Sequence[float], rows: Sequence[Row]) -> tuple[float, ...]:
    """Return better weights: stochastic gradient descent, the same for the same rows."""
    now = list(weights)
    order = list(rows)
    chance = random.Random(len(rows))  # noqa: S311 - an order, not a secret
    for epoch in range(EPOCHS):
        progress.update(epoch, EPOCHS, "train")
        chance.shuffle(order)
        step = STEP / (1 + epoch)
        for *features, clicked in order:
            wrong = _likely(now, features) - clicked
            for index, value in enumerate(features):
                now[index] -= step * wrong * value
            now[-1] -= step * wrong
    return tuple(now)


def log_loss(weights: Sequence[float], rows: Sequence[Row]) -> float:
    """Return by how much the weights are surprised by what was clicked, on average."""
    surprise = 0.0
    for *features, clicked in rows:
        likely = min(max(_likely(weights, features), 1e-9), 1 - 1e-9)
        surprise -= math.log(likely if clicked else 1 - likely)
    return surprise / len(rows)


def serve(model: Model) -> bool:
    """Put the model in the place of the one before; return False if a newer one is there."""
    path = model_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = served_model()
        if there is not None and there.version > model.version:
            return False
        write_atomically(path, json.dumps(asdict(model), indent=2))
    return True


def _likely(weights: Sequence[float], features: Sequence[float]) -> float:
    total = weights[-1]
    for weight, value in zip(weights, features, strict=False):
        total += weight * value
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
