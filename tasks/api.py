"""`python -m tasks.reports_api`: answers tenants who ask how far their report is, and fetch it."""

import os
import re
from pathlib import Path
from typing import Any

import uvicorn
from celery import Celery
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse

from cronq import configure
from cronq.app import cronq_of
from cronq.job import State
from cronq.store.jobs import JobFilter, list_jobs
from cronq.views import job_fields, live_progress
from tasks.files import reports_dir

LOOKED_AT = 10
"""The newest jobs of a tenant, among which is one that has begun."""

app = FastAPI(title="reports")
celery = configure(Celery("reports-api", set_as_current=False))


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


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("REPORTS_API_PORT", "8788")))
