"""`cronq dead`: nothing is done by a dry run or without an answer, and ids and filters mean the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from cronq.job import State
from cronq.store.dead_messages import DeadMessage, record_message
from cronq.store.jobs import get_job
from cronq.store.tables import job

from .shell import Shell, opened


class DeadShell(Shell):
    """Runs `cronq dead`."""

    first = ("dead",)

    def ids(self, *args: str) -> list[str]:
        return [item["id"] for item in self.json("list", *args)["items"]]

    def message(self, **facts: Any) -> str:
        return record_message(
            self.parts.database,
            DeadMessage(**{"kind": "malformed", "error": "it is a 7", "body": b"7", **facts}),
        )


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadShell]:
    with opened(DeadShell, tmp_path, monkeypatch) as shell:
        yield shell


def test_the_list_names_each_letter_and_why_it_died(shell: DeadShell) -> None:
    shell.rows.schedule("nightly")
    job_id, message_id = shell.failed(schedule="nightly"), shell.message()
    shown = shell("list").output
    for text in (job_id, "nightly", "network", "ValueError: network", message_id, "malformed", "it is a 7"):
        assert text in shown
    assert shell.json("list")["count"] == 2
    assert shell.ids("--kind", "malformed") == [message_id]
    assert shell.ids("--schedule", "nightly") == [job_id]
    assert len(shell.ids("--since", "1h", "-n", "1")) == 1
    assert shell.ids("--until", "1h") == []
    assert "1 more" in shell("list", "-n", "1").output


def test_show_tells_all_of_a_job_and_all_of_a_message(shell: DeadShell) -> None:
    job_id = shell.failed(task="shop.charge")
    message_id = shell.message(headers={"lang": "cobol"}, worker="w@host")
    assert shell.json("show", job_id)["attempt_list"][0]["kind"] == "network"
    item = shell.json("show", message_id)
    assert (item["body"], item["headers"], item["worker"]) == ("7", {"lang": "cobol"}, "w@host")
    assert "cobol" in shell("show", message_id).output
    missing = shell("show", "nobody")
    assert missing.exit_code == 3
    assert "there is no dead letter 'nobody'" in missing.output


@pytest.mark.parametrize("action", ["retry", "discard"])
def test_a_dry_run_says_what_would_be_done_and_does_nothing(shell: DeadShell, action: str) -> None:
    job_id = shell.failed(task="shop.charge")
    shell.failed(task="shop.refund")
    result = shell(action, "--task", "shop.charge", "--dry-run")
    assert f"would {action} 1 dead letter:" in result.output
    assert job_id in result.output
    assert shell.json(action, "--task", "shop.charge", "--dry-run") == {
        "would": action,
        "count": 1,
        "ids": [job_id],
    }
    assert len(shell.ids()) == 2


@pytest.mark.parametrize("action", ["retry", "discard"])
def test_a_filter_asks_first_and_no_means_no(shell: DeadShell, action: str) -> None:
    shell.failed()
    refused = shell(action, "--all", answer="n\n")
    assert refused.exit_code == 1
    assert len(shell.ids()) == 1
    assert "1 dead letter is" in shell(action, "--all", answer="y\n").output
    assert shell.ids() == []


def test_without_ids_and_filters_nothing_is_meant(shell: DeadShell) -> None:
    shell.failed()
    result = shell("discard", "--yes")
    assert result.exit_code == 2
    assert "say which" in result.output
    assert len(shell.ids()) == 1


def test_retry_sends_back_what_fits_and_leaves_the_others(shell: DeadShell) -> None:
    network, permanent = shell.failed("network"), shell.failed("permanent")
    done = shell.json("retry", "--kind", "network", "--yes")
    assert done == {"done": "retry", "count": 1, "ids": [network]}
    assert get_job(shell.parts.database, network)["state"] == State.SCHEDULED
    assert shell.ids() == [permanent]
    assert f"{permanent} is due again" in shell("retry", permanent).output


def test_discard_takes_off_the_list_and_keeps_the_history(shell: DeadShell) -> None:
    job_id, message_id = shell.failed(), shell.message()
    result = shell("discard", job_id, message_id)
    assert result.exit_code == 0, result.output
    assert shell.ids() == []
    assert get_job(shell.parts.database, job_id)["state"] == State.FAILED


def test_one_unknown_id_among_several_stops_all(shell: DeadShell) -> None:
    job_id = shell.failed()
    result = shell("discard", job_id, "nobody")
    assert result.exit_code == 3
    assert shell.ids() == [job_id]


def test_a_message_that_cannot_go_back_is_named(shell: DeadShell) -> None:
    message_id = shell.message()  # it came from no queue
    result = shell("retry", message_id)
    assert result.exit_code == 1
    assert f"{message_id} cannot be sent back" in result.output
    assert shell.ids() == [message_id]


def test_secrets_in_errors_and_arguments_are_not_shown(shell: DeadShell) -> None:
    job_id = shell.failed(kwargs={"password": "hunter2"})
    with shell.parts.database.begin() as connection:
        connection.execute(
            update(job).where(job.c.id == job_id).values(error="no answer: http://u:hunter2@127.0.0.1/")
        )
    message_id = shell.message(headers={"api_key": "hunter2"})
    for args in (["list"], ["show", job_id], ["show", message_id]):
        assert "hunter2" not in shell(*args).output
        assert "hunter2" not in shell(*args, "--json").output
