"""`cronq status`, `jobs` and `schedules`: what they do, what they say to programs, and their exit codes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery import Celery
from click.testing import CliRunner

from cronq.cli.main import cronq
from cronq.declaration import When, at, cron, delay, every, rrule
from cronq.job import State
from cronq.store.jobs import get_job
from cronq.store.schedules import Change, get_schedule, write_changes
from cronq.timing import timing_from

from .shell import Shell, opened

FAILED, WRONG, UNKNOWN, REFUSED, UNAVAILABLE = 1, 2, 3, 4, 5


class Steering(Shell):
    """Runs all commands."""

    def state(self, job_id: str) -> str:
        return str(get_job(self.parts.database, job_id)["state"])

    def declare(self, name: str, when: When | None = None, source: str = "code:shop") -> None:
        """Store a schedule as code does."""
        declared = (when or every("1h")).schedule(name=name, task="shop.work")
        database = self.parts.database
        with database.begin() as connection:
            first = timing_from(declared.timing).next(database.clock())
            change = Change(declared, first, restart=True, delay_s=None)
            write_changes(database, connection, [change], source=source, actor=source)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Steering]:
    with opened(Steering, tmp_path, monkeypatch) as shell:
        yield shell


# -- schedules ---------------------------------------------------------------------------------------------


def test_a_schedule_is_added_edited_and_deleted(shell: Steering) -> None:
    added = shell.json("schedules", "add", "nightly", "--task", "shop.backup", "--cron", "30 2 * * *", "--tz",
                       "Europe/Berlin", "--kwargs", '{"full": true}', "--catch-up-window", "2h")  # fmt: skip
    assert (added["version"], added["kwargs"], added["catch_up_window"]) == (1, {"full": True}, 7200)
    edited = shell.json("schedules", "edit", "nightly", "--queue", "slow", "--every", "90s")
    assert (edited["version"], edited["queue"], edited["timing"]["kind"]) == (2, "slow", "every")
    assert edited["kwargs"] == {"full": True}  # what is not named stays
    assert shell("schedules", "delete", "nightly", answer="n\n").exit_code == FAILED
    assert shell("schedules", "delete", "nightly", "--yes").exit_code == 0
    assert get_schedule(shell.parts.database, "nightly").retired_at is not None


def test_a_policy_is_said_as_the_api_says_it_or_in_capitals(shell: Steering) -> None:
    said = shell.json("schedules", "add", "nightly", "--task", "shop.backup", "--cron", "30 2 * * *",
                      "--dst", "both", "--overlap", "queue_one", "--catch-up", "ALL")  # fmt: skip
    assert (said["timing"]["dst"], said["overlap"], said["catch_up"]) == ("both", "queue_one", "all")
    wrong = shell("schedules", "edit", "nightly", "--catch-up", "everything")
    assert wrong.exit_code == WRONG
    assert "'latest'" in wrong.stderr


def test_a_schedule_whose_time_has_passed_is_refused_but_one_that_has_run_may_be_changed(
    shell: Steering,
) -> None:
    refused = shell("schedules", "add", "once", "--task", "shop.work", "--at", "2020-01-01T09:00Z")
    assert refused.exit_code == REFUSED
    assert "it would never run: Once, at 2020-01-01T09:00:00Z" in refused.stderr
    assert shell("schedules", "show", "once").exit_code == UNKNOWN
    shell.declare("ran", at("2020-01-01T09:00Z"), source="api")
    edited = shell("schedules", "edit", "ran", "--queue", "slow")
    assert (edited.exit_code, edited.stdout) == (0, "ran is at version 2; it has no fire time left\n")


def test_one_who_was_slower_is_refused(shell: Steering) -> None:
    shell.json("schedules", "add", "nightly", "--task", "shop.backup", "--every", "1h")
    shell.json("schedules", "edit", "nightly", "--every", "2h")
    late = shell("schedules", "edit", "nightly", "--every", "3h", "--if-version", "1")
    assert late.exit_code == REFUSED
    assert "somebody changed it" in late.stderr


def test_what_code_declares_is_changed_in_the_code(shell: Steering) -> None:
    shell.declare("of-code")
    for words in (["edit", "of-code", "--queue", "slow"], ["delete", "of-code"]):  # which asks nothing first
        refused = shell("schedules", *words)
        assert refused.exit_code == REFUSED
        assert "belongs to code:shop" in refused.stderr
    assert shell("schedules", "add", "of-code", "--task", "x", "--every", "1h").exit_code == REFUSED


@pytest.mark.parametrize(
    "words",
    [
        ["--every", "1h", "--cron", "* * * * *"],
        ["--cron", "61 * * * *"],
        ["--every", "1h", "--tz", "Europe/Berlin"],
        ["--every", "1h", "--args", "{}"],
        ["--every", "1h", "--kwargs", "nonsense"],
        [],
    ],
)
def test_a_schedule_that_makes_no_sense_is_a_mistake_in_the_command(
    shell: Steering, words: list[str]
) -> None:
    assert shell("schedules", "add", "odd", "--task", "shop.work", *words).exit_code == WRONG


def test_a_list_reads_no_more_than_it_shows(shell: Steering) -> None:
    for name in "abc":
        shell.declare(name)
    first = shell.json("schedules", "list", "-n", "2")
    assert [each["name"] for each in first["items"]] == ["a", "b"]
    rest = shell.json("schedules", "list", "--after", first["next_after"])
    assert ([each["name"] for each in rest["items"]], rest["next_after"]) == (["c"], None)
    assert [each["name"] for each in shell.json("schedules", "list", "--text", "B")["items"]] == ["b"]


def test_the_shell_completes_names(shell: Steering, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.declare("nightly")
    shell.declare("hourly")
    monkeypatch.setattr("cronq.cli.common.parts_of", lambda _context: shell.parts)
    asked = {"_CRONQ_COMPLETE": "bash_complete", "COMP_WORDS": "cronq schedules pause ni", "COMP_CWORD": "3"}
    result = CliRunner().invoke(cronq, [], prog_name="cronq", env=asked)
    assert result.stdout.strip() == "plain,nightly"


def test_a_schedule_whose_definition_cannot_be_read_is_listed_and_only_a_whole_new_one_mends_it(
    shell: Steering,
) -> None:
    for name in ("bad", "good"):
        shell("schedules", "add", name, "--task", "shop.work", "--every", "1h")
    shell.rows.write_by_hand("bad", {"overlap": "a word of a newer version", "jitter": "soon"})
    bad, good = shell.json("schedules", "list")["items"]
    assert "cannot be read" in bad["fault"]
    assert good["fault"] is None
    table = shell("schedules", "list").output
    assert "set aside: its stored definition cannot be read" in table
    assert shell.json("schedules", "show", "bad")["next_fires"] == []
    assert "set aside" in shell("schedules", "show", "bad").output
    assert shell("why", "bad", "12:00").exit_code in (0, FAILED)  # FAILED: it was not due then
    for words in (("schedules", "edit", "bad", "--queue", "q"), ("schedules", "run", "bad")):
        refused = shell(*words)
        assert (refused.exit_code, "cannot be read" in refused.output) == (REFUSED, True), refused.output
    assert "cannot be read" in shell("next", "--schedule", "bad").output
    assert shell("heatmap").exit_code == 0
    shell("schedules", "delete", "bad", "--yes")
    assert shell("schedules", "add", "bad", "--task", "shop.work", "--every", "1h").exit_code == 0
    assert shell.json("schedules", "show", "bad")["fault"] is None


def test_show_says_all_that_is_declared_and_no_secret(shell: Steering) -> None:
    shell("schedules", "add", "nightly", "--task", "shop.backup", "--every", "90s", "--queue", "slow",
          "--kwargs", '{"full": true, "password": "hunter2"}', "--overlap", "queue", "--buffer", "7",
          "--catch-up-window", "2h", "--jitter", "30s", "--tenant", "acme", "--pause-after", "3")  # fmt: skip
    shell.declare("report", every("90s", after={"any": ["nightly", "hourly"]}, fan_out=["a", "b"]))
    shown = {line.split(None, 1)[0]: line.split(None, 1)[1]
             for line in shell("schedules", "show", "nightly").stdout.splitlines()
             if line.startswith("  ")}  # fmt: skip
    assert shown["kwargs"] == '{"full": true, "password": "***"}'
    assert (shown["queue"], shown["tenant"], shown["pause-after"]) == ("slow", "acme", "3")
    assert shown["overlap"] == "queue, at most 7 wait"
    assert shown["catch-up"] == "latest, of the last 2h"
    assert shown["jitter"] == "30s"
    other = shell("schedules", "show", "report").stdout
    assert "any of nightly, hourly" in other
    assert '{"items": ["a", "b"]}' in other


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (every("5s"), "every 5s"),
        (delay("90s"), "1m30s after the last"),
        (at("2026-07-01T12:00:00+02:00"), "at 2026-07-01T10:00:00Z"),
        (cron("0 6 * * *", "0 18 * * *", tz="Europe/Berlin"), "cron 0 6 * * * · 0 18 * * *, Europe/Berlin"),
        (rrule("FREQ=DAILY;BYHOUR=9"), "rrule FREQ=DAILY;BYHOUR=9, UTC"),
        (every("1h", end="2126-01-01T00:00Z"), "every 1h, within bounds"),
    ],
)
def test_a_timing_stands_in_the_list_with_its_unit(shell: Steering, when: When, text: str) -> None:
    shell.declare("one", when)
    assert f"  {text}  " in shell("schedules", "list").stdout


def test_run_says_which_job_of_which_schedule(shell: Steering) -> None:
    shell.declare("nightly")
    (job_id,) = re.findall(r"^job (\S+) of nightly asked for$", shell("schedules", "run", "nightly").stdout)
    assert shell.state(job_id) == State.SCHEDULED
    assert shell.json("schedules", "run", "nightly")["schedule"] == "nightly"


# -- jobs --------------------------------------------------------------------------------------------------


def test_jobs_are_listed_by_filter(shell: Steering) -> None:
    wanted = shell.failed(task="shop.pay", queue="slow", tenant="acme")
    shell.rows.job(task="shop.work")
    for words in (["--queue", "slow"], ["--text", "NETWORK"], ["--tenant", "acme"], ["--state", "failed"]):
        assert [each["id"] for each in shell.json("jobs", "list", *words)["items"]] == [wanted]
    assert shell.json("jobs", "list", "--until", "1h")["items"] == []


def test_jobs_are_cancelled_by_id_or_by_filter_and_never_by_chance(shell: Steering) -> None:
    ids = [shell.rows.job(task="shop.work") for _ in range(3)]
    other = shell.rows.job(task="shop.pay")
    assert shell("jobs", "cancel").exit_code == WRONG
    assert shell("jobs", "cancel", ids[0], "--task", "shop.work").exit_code == WRONG
    assert shell.json("jobs", "cancel", "--task", "shop.work", "--dry-run") == {"would": "cancel", "count": 3}
    assert shell("jobs", "cancel", "--task", "shop.work", answer="n\n").exit_code == FAILED
    assert {shell.state(each) for each in ids} == {State.SCHEDULED}
    assert shell.json("jobs", "cancel", ids[0])["ids"] == [ids[0]]
    assert shell.json("jobs", "cancel", "--task", "shop.work", "--yes") == {"done": "cancel", "count": 2}
    assert {shell.state(each) for each in ids} == {State.CANCELLED}
    assert shell.state(other) == State.SCHEDULED


def test_failed_jobs_are_sent_back_and_others_cannot_be(shell: Steering) -> None:
    ids = [shell.failed(task="shop.work") for _ in range(2)]
    waiting = shell.rows.job(task="shop.work")
    assert shell("jobs", "retry", waiting).exit_code == REFUSED
    assert shell("jobs", "retry", "nobody").exit_code == UNKNOWN
    assert shell.json("jobs", "retry", "--all", "--yes")["count"] == 2
    assert {shell.state(each) for each in ids} == {State.SCHEDULED}


@pytest.mark.parametrize(
    "words",
    [
        ["enqueue", "shop.work", "--in", "5x"],
        ["jobs", "list", "--since", "5x"],
        ["jobs", "watch", "an-id", "--for", "5x"],
        ["dead", "list", "--until", "5x"],
    ],
)
def test_what_is_no_length_of_time_is_a_mistake_in_the_command(shell: Steering, words: list[str]) -> None:
    result = shell(*words)
    assert result.exit_code == WRONG
    assert "write a length of time such as 90s" in result.stderr


@pytest.mark.parametrize(
    "words",
    [["jobs", "list"], ["jobs", "cancel"], ["dead", "list"], ["batches", "list"], ["backfills", "list"]],
)
def test_a_filter_by_a_schedule_that_is_not_there_says_so(shell: Steering, words: list[str]) -> None:
    shell.declare("nightly")
    result = shell(*words, "--schedule", "nightli")
    assert result.exit_code == UNKNOWN
    assert "did you mean 'nightly'?" in result.stderr


def test_watching_a_job_that_failed_ends_with_its_error(shell: Steering) -> None:
    result = shell("jobs", "watch", shell.failed(task="shop.pay"))
    assert result.exit_code == FAILED
    assert "ValueError: network" in result.stderr
    done = shell.rows.job(task="shop.pay")
    shell.json("jobs", "cancel", done)
    assert shell("jobs", "watch", done).exit_code == FAILED


# -- leader and status --------------------------------------------------------------------------------------


def test_status_fails_while_nobody_leads_and_says_what_to_do(shell: Steering) -> None:
    shell.failed()
    result = shell("status", "--json")
    facts = json.loads(result.stdout)
    assert result.exit_code == FAILED
    assert (facts["leader"], facts["dead_letters"]) == (None, 1)
    assert any("start a beat with" in trouble for trouble in facts["troubles"])


def test_who_leads_is_not_known_while_redis_does_not_answer(shell: Steering) -> None:
    shell.rows.begin_term("beat-1")
    result = shell("leader")
    assert result.exit_code == FAILED
    assert "whether anybody leads cannot be seen" in result.stderr
    assert "has been beat-1's since" in result.stderr
    assert json.loads(shell("leader", "--json").stdout)["confirmed"] is False
    assert "not known; the last was beat-1" in shell("status").stdout


def test_a_database_that_was_never_made_is_another_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRONQ_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.db'}")
    result = CliRunner().invoke(
        cronq, ["status"], obj=SimpleNamespace(app=Celery("shop", set_as_current=False))
    )
    assert result.exit_code == UNAVAILABLE
    assert "cronq db upgrade" in result.stderr
