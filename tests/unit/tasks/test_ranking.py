import json
import math
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tasks import api, ranking, visitors
from tasks.ranking import FEATURES, Model, log_loss, open_feed, rank, refresh_ranking, serve, served_model

from .conftest import FIRE_TIME, job

GUESSING = math.log(2)


@pytest.fixture(autouse=True)
def feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEED_PATH", str(tmp_path / "feed.sqlite"))
    monkeypatch.setenv("MODEL_PATH", str(tmp_path / "models" / "feed-ranking.json"))


def show(count: int, *, likes: int = 0, seed: int = 1) -> None:
    """Show posts to people who click on those with much of the feature `likes`."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        features = [chance.random() for _ in FEATURES]
        rows.append((f"{seed} {number}", *features, int(chance.random() < features[likes] ** 2)))
    with open_feed() as feed:
        feed.executemany(
            f"INSERT INTO impression (shown, {', '.join(FEATURES)}, clicked) VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


def post(strong: int) -> list[float]:
    return [0.9 if index == strong else 0.5 for index in range(len(FEATURES))]


def model(version: datetime = FIRE_TIME) -> Model:
    return Model(version.isoformat(), version.isoformat(), 1, 1, 0.5, (0.0,) * (len(FEATURES) + 1))


def test_it_learns_what_people_click_better_than_guessing() -> None:
    show(2000, likes=2)
    with job() as seen:
        result = refresh_ranking()
    served = served_model()
    assert served is not None
    assert result == {
        "served": True,
        "version": FIRE_TIME.isoformat(),
        "impressions": 2000,
        "loss": served.loss,
    }
    assert served.loss < GUESSING - 0.05
    posts = {f"much of {name}": post(index) for index, name in enumerate(FEATURES)}
    assert rank(served, posts)[0] == "much of popularity"
    assert {one["current_step"] for one in seen} == {"train", "serve it"}


def test_a_new_model_follows_what_people_click_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "WINDOW", 2000)
    show(2000, likes=0)
    with job(FIRE_TIME):
        refresh_ranking()
    before = served_model()
    show(2000, likes=1, seed=2)
    with job(FIRE_TIME + timedelta(hours=1)):
        refresh_ranking()
    after = served_model()
    assert before is not None
    assert after is not None
    with open_feed() as feed:
        newest, rows = ranking.read_rows(feed)
    assert (after.newest, len(rows)) == (newest, 2000)
    assert log_loss(after.weights, rows) < log_loss(before.weights, rows)


def test_only_so_many_impressions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "WINDOW", 100)
    show(250)
    with job():
        refresh_ranking()
    with open_feed() as feed:
        assert feed.execute("SELECT count(*), min(id) FROM impression").fetchone() == (100, 151)


def test_training_twice_gives_the_same_model() -> None:
    show(500)
    with open_feed() as feed:
        _, rows = ranking.read_rows(feed)
    start = (0.0,) * (len(FEATURES) + 1)
    assert ranking.train(start, rows) == ranking.train(start, rows)


def test_where_nobody_was_nothing_is_trained() -> None:
    with job():
        assert refresh_ranking() == {"served": False, "why": "nobody has seen anything yet"}
    assert served_model() is None


def test_a_late_trainer_does_not_put_an_old_model_over_a_newer_one() -> None:
    assert serve(model(FIRE_TIME))
    assert not serve(model(FIRE_TIME - timedelta(hours=1)))
    assert served_model() == model(FIRE_TIME)


def test_whoever_reads_while_models_are_swapped_finds_a_whole_one() -> None:
    serve(model())
    over = threading.Event()
    found: list[Model | None] = []

    def read() -> None:
        while not over.is_set():
            found.append(served_model())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for hours in range(1, 200):
            serve(model(FIRE_TIME + timedelta(hours=hours)))
    finally:
        over.set()
        reader.join()
    versions = [one.version for one in found if one is not None]
    assert len(versions) == len(found)
    assert versions == sorted(versions)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(api.app) as client:
        yield client


@pytest.mark.parametrize(("hours", "stale", "status"), [(1, False, 200), (3, True, 503)])
def test_the_age_of_the_model_is_shown_and_too_old_a_one_is_unhealthy(
    client: TestClient, hours: int, stale: bool, status: int
) -> None:
    serve(model(datetime.now(UTC) - timedelta(hours=hours)))
    told = client.get("/api/feed/model").json()
    assert told["stale"] is stale
    assert told["age_s"] == pytest.approx(hours * 3600, abs=60)
    assert client.get("/api/feed/healthz").status_code == status
    assert f"feed_model_age_seconds {hours * 3600 // 10}" in client.get("/metrics").text


def test_posts_are_ranked_by_the_served_model(client: TestClient) -> None:
    assert client.post("/api/feed/rank", json={}).status_code == 503
    show(2000, likes=2)
    with job():
        refresh_ranking()
    answer = client.post("/api/feed/rank", json={"dull": post(1), "popular": post(2)}).json()
    assert answer == {"version": FIRE_TIME.isoformat(), "posts": ["popular", "dull"]}
    assert client.post("/api/feed/rank", json={"odd": [1.0]}).status_code == 422


def test_a_minute_of_visitors_twice_is_a_minute_of_visitors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BILLING_PATH", "SHOP_PATH"):
        monkeypatch.setenv(name, str(tmp_path / f"{name}.sqlite"))
    monkeypatch.setenv("REPOSITORIES_DIR", str(tmp_path / "repositories"))
    asked: list[object] = []
    monkeypatch.setattr(visitors, "enqueue", lambda *what, **_: asked.append(what))
    for _ in range(2):
        with job():
            visitors.visit()
    with open_feed() as feed:
        assert feed.execute("SELECT count(*) FROM impression").fetchone()[0] == visitors.IMPRESSIONS
    with visitors.open_billing() as billing:
        assert billing.execute("SELECT count(*) FROM subscription").fetchone()[0] == 1
    assert sorted(path.name for path in (tmp_path / "repositories").iterdir()) == ["kettle", "lamp", "spoon"]
    assert json.dumps(asked) == json.dumps([["tasks.transcode", None, ["240p"]]] * 2)
