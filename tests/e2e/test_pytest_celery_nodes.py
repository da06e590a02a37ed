"""pytest-celery drives the nodes of this machine, on both brokers."""

from pytest_celery import CeleryTestSetup

TIMEOUT = 30


def test_plain_task_runs_after_its_worker_was_killed_and_restarted(celery_setup: CeleryTestSetup) -> None:
    assert celery_setup.ready()
    assert celery_setup.app.send_task("plain.add", (2, 3)).get(timeout=TIMEOUT) == 5

    celery_setup.worker.kill()
    assert celery_setup.worker.container.status == "exited"
    sent_to_nobody = celery_setup.app.send_task("plain.add", (20, 30))
    celery_setup.worker.restart()

    assert sent_to_nobody.get(timeout=TIMEOUT) == 50
