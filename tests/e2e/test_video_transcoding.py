"""Videos that users upload: before the batch, with live progress, through a kill, cancelled, told of."""

import base64
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tasks import orders
from tests.support.processes import Processes, wait_for
from tests.support.receiver import receiving
from tests.support.server import free_port

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BATCH = 150
VARIANTS = ["1080p", "720p", "480p"]


class Api:
    """The status API, as a client of it."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def upload(self, **more: Any) -> str:
        return str(
            self.call("/api/jobs", {"type": "tasks.transcode", "kwargs": {"variants": VARIANTS}, **more})[
                "id"
            ]
        )

    def job(self, job_id: str) -> dict[str, Any]:
        return self.call(f"/api/jobs/{job_id}")


@pytest.fixture
def env(deployment_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {
        **deployment_env,
        "CRONQ_ORDERS_PATH": str(tmp_path / "orders.sqlite"),
        "CRONQ_REPORTS_DIR": str(tmp_path / "reports"),
        "VIDEOS_DIR": str(tmp_path / "videos"),
        "CRONQ_WEBHOOK_SECRET": SECRET,
        "CRONQ_WEBHOOK_ALLOW": "127.0.0.1",
    }


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("broker_url", "database_url"), [("redis", "sqlite"), ("rabbitmq", "postgresql")], indirect=True
)
def test_an_uploaded_video_goes_before_the_batch_survives_its_worker_and_is_told_of(
    processes: Processes, env: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    api = Api(port)
    assert processes.cronq("upgrade", "db", "upgrade", env=env).wait(60) == 0
    processes.cronq("api", "api", "--port", str(port), env=env)
    wait_for(lambda: api.call("/healthz"), 30, "the API", ignoring=OSError)
    processes.beat("beat", "beat.app", "-S", "cronq", env=env)
    batch = [
        api.call("/api/jobs", {"type": "tasks.daily_report", "args": [tenant]})["id"]
        for tenant in orders.TENANTS[:BATCH]
    ]
    with receiving() as receiver:
        video = api.upload(callback_url=receiver.url)
        doomed = processes.worker("doomed", "workers.app", "-c", "1", env=env)

        running = wait_for(
            lambda: (job := api.job(video))["status"] == "RUNNING" and 0 < job["progress"] < 100 and job,
            90,
            "live progress",
        )
        assert running["metadata"]["current_step"].startswith(("make the test clip", "transcode to"))
        counts = [api.job(each)["status"] for each in batch[:: BATCH // 10]]
        assert "PENDING" in counts, "the video waited for the whole batch"
        doomed.kill()
        processes.worker("heir", "workers.app", "-c", "2", env=env)
        done = wait_for(
            lambda: (job := api.job(video))["status"] == "COMPLETED" and job, 120, "the heir's work"
        )
        assert (done["attempts"], done["progress"]) == (2, 100)
        folder = tmp_path / "videos" / video
        assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == sorted(
            [*(f"{name}.mp4" for name in VARIANTS), "source.mp4", "thumbnail.jpg"]
        )
        wait_for(lambda: receiver.seen, 60, "the webhook")

        unwanted = api.upload()
        wait_for(
            lambda: (job := api.job(unwanted))["status"] == "RUNNING" and job["progress"] > 0, 60, "a start"
        )
        api.call(f"/api/jobs/{unwanted}/cancel", {})
        wait_for(lambda: api.job(unwanted)["status"] == "CANCELLED", 30, "it to stop")
        assert not list((tmp_path / "videos" / unwanted).glob("480p*"))

    ((headers, body),) = receiver.seen
    told = Webhook(SECRET).verify(body, headers)
    assert (told["data"]["id"], told["data"]["status"]) == (video, "COMPLETED")
    assert set(told["data"]["result"]["files"]) == set(VARIANTS)
