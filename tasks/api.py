"""`python -m tasks.api`: what this deployment tells others: of tenants' reports, and of the feed."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from celery import Celery
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, PlainTextResponse

from cronq import configure
from cronq.app import cronq_of
from cronq.job import State
from cronq.store.jobs import JobFilter, list_jobs
from cronq.views import job_fields, live_progress
from tasks import ranking
from tasks.files import reports_dir

LOOKED_AT = 10
"""The newest jobs of a tenant, among which is one that has begun."""

STALE = timedelta(hours=2)
"""The age at which the feed is ranked too badly: one refresh was missed, and the next is not there either."""

app = FastAPI(title="the reference deployment")
celery = configure(Celery("deployment-api", set_as_current=False))


@app.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that this process answers."""
    return {"status": "ok"}


@app.get("/api/reports/{tenant}/latest")
def latest(tenant: str) -> dict[str, Any]:
    """Return the state, the progress and, once it is there, the address of the tenant's latest report."""
    parts = cronq_of(celery)
    rows = list_jobs(parts.database, JobFilter(task="tasks.daily_report", tenant=tenant), limit=LOOKED_AT)
    if not rows:
        raise HTTPException(404, f"there is no report of a tenant {tenant!r} yet")
    row = next((row for row in rows if row["state"] != State.SCHEDULED), rows[0])
    job = job_fields(row, live_progress(parts, [row]).get(row["id"]))
    done = job["status"] == State.COMPLETED and isinstance(job["result"], dict)
    name = Path(job["result"]["html"]).name if done else None
    return {
        "tenant": tenant,
        "state": job["status"],
        "progress": job["progress"],
        "fire_time": job["fire_time"],
        "download_url": f"/api/reports/{tenant}/{name}" if name else None,
        "job": job["id"],
    }


@app.get("/api/reports/{tenant}/{name}")
def download(tenant: str, name: str) -> FileResponse:
    """Return one report."""
    path = reports_dir() / tenant / name
    if not re.fullmatch(r"[\w.-]+\.(html|csv)", name) or not re.fullmatch(r"[\w-]+", tenant):
        raise HTTPException(404)
    if not path.is_file():
        raise HTTPException(404, "this report was not made, or it was deleted since")
    return FileResponse(path)


@app.get("/api/feed/model")
def feed_model() -> dict[str, Any]:
    """Return which model ranks the feed, how old it is, and whether that is too old."""
    model = _model()
    age = _age(model)
    return {
        "version": model.version,
        "trained_at": model.trained_at,
        "age_s": round(age.total_seconds(), 1),
        "stale": age > STALE,
        "impressions": model.impressions,
        "loss": model.loss,
    }


@app.get("/api/feed/healthz")
def feed_healthz() -> dict[str, str]:
    """Answer 503 while the feed is ranked by a model that is too old: for the health checks."""
    age = _age(_model())
    if age > STALE:
        raise HTTPException(503, f"the model is {age} old")
    return {"status": "ok"}


@app.post("/api/feed/rank")
def feed_rank(posts: dict[str, list[float]]) -> dict[str, Any]:
    """Return the posts, given as name and features, in the order in which to show them."""
    wrong = [name for name, features in posts.items() if len(features) != len(ranking.FEATURES)]
    if wrong:
        raise HTTPException(422, f"a post has the features {', '.join(ranking.FEATURES)}; wrong: {wrong}")
    model = _model()
    return {"version": model.version, "posts": ranking.rank(model, posts)}


@app.get("/metrics")
def metrics() -> PlainTextResponse:
    """Return the age of the model, for Prometheus."""
    model = ranking.served_model()
    lines = [
        "# HELP feed_model_age_seconds how long ago the model that ranks the feed was to be trained",
        "# TYPE feed_model_age_seconds gauge",
    ]
    if model is not None:
        lines.append(f"feed_model_age_seconds {_age(model).total_seconds():.1f}")
    return PlainTextResponse("\n".join(lines) + "\n")


def _model() -> ranking.Model:
    model = ranking.served_model()
    if model is None:
        raise HTTPException(503, "no model was trained yet")
    return model


def _age(model: ranking.Model) -> timedelta:
    """Return how far the model is behind: since its fire time, so that a late run shows too."""
    return datetime.now(UTC) - datetime.fromisoformat(model.version)


if __name__ == "__main__":
    port = int(os.environ.get("DEPLOYMENT_API_PORT", "8788"))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
