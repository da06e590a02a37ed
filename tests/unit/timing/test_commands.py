import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner, Result

from cronq.cli import heatmap as heatmap_module
from cronq.cli.explain import explain
from cronq.cli.heatmap import heatmap
from cronq.cli.next import next_command
from cronq.timing import Cron
from cronq.timing.load import Member


def run(*arguments: str) -> Result:
    return CliRunner().invoke(next_command, list(arguments))


def test_next_prints_the_json_that_programs_read() -> None:
    result = run("30 2 * * *", "--tz", "Europe/Paris", "--from", "2026-10-24", "-n", "2", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == [
        {"fire_time": "2026-10-24T00:30:00Z", "local": "2026-10-24T02:30:00+02:00", "note": None},
        {"fire_time": "2026-10-25T00:30:00Z", "local": "2026-10-25T02:30:00+02:00", "note": None},
    ]


def test_next_is_strictly_after_from_which_is_utc_unless_it_has_an_offset() -> None:
    for start in ("2026-06-01T02:30:00", "2026-06-01T04:30:00+02:00"):
        result = run("30 2 * * *", "--from", start, "-n", "1", "--json")
        assert json.loads(result.stdout)[0]["fire_time"] == "2026-06-02T02:30:00Z"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--every", "90s"], "2026-06-01T00:01:30Z"),
        (["--rrule", "FREQ=DAILY;BYHOUR=9"], "2026-06-01T09:00:00Z"),
        (["--at", "2026-07-01T12:00:00+02:00"], "2026-07-01T10:00:00Z"),
        (["30 2 * * *", "--tz", "Europe/Paris", "--dst", "utc"], "2026-06-01T02:30:00Z"),
        (["0 0 13 * FRI", "--day", "and"], "2026-11-13T00:00:00Z"),
    ],
)
def test_next_takes_every_way_to_say_when(arguments: list[str], wanted: str) -> None:
    result = run(*arguments, "--from", "2026-06-01", "-n", "1", "--json")
    assert json.loads(result.stdout)[0]["fire_time"] == wanted, result.output


def test_next_shows_local_time_utc_and_notes() -> None:
    result = run("30 2 * * *", "--tz", "Europe/Paris", "--from", "2026-03-28T12:00", "-n", "1")
    assert "Sun 2026-03-29 03:00:00+02:00   2026-03-29T01:00:00Z   clocks went forward 1h" in result.stdout
    assert run("--at", "2020-01-01", "--from", "2026-01-01").stdout == "never again\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["61 * * * *"],
        ["30 2 * * *", "--tz", "Mars/Base"],
        ["30 2 * * *", "--from", "tomorrow"],
        ["--every", "often"],
        ["--rrule", "FREQ=NEVER"],
        ["--at", "noon"],
        ["H H * * *"],
        [],
        ["30 2 * * *", "--every", "90s"],
        ["30 2 * * *", "--jitter", "x"],
    ],
)
def test_a_mistake_is_one_line_on_standard_error_and_exit_code_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output


def test_h_is_drawn_from_the_schedules_name() -> None:
    first, second = (
        run("H H * * *", "--hash-id", name, "--from", "2026-06-01", "--json").stdout for name in "ab"
    )
    assert first != second


def test_explain_says_it_in_english_or_says_what_is_wrong() -> None:
    result = CliRunner().invoke(explain, ["30 2 * * *", "--tz", "Europe/Paris"])
    assert result.stdout.startswith("At 02:30 every day, on the clocks of Europe/Paris.")
    wrong = CliRunner().invoke(explain, ["30 25 * * *"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")


def test_the_heatmap_draws_a_day_and_names_the_herds(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [Member(f"nightly-{n}", Cron("0 2 * * *")) for n in range(9)]
    monkeypatch.setattr(heatmap_module, "load_schedules", lambda _context: members)
    drawn = CliRunner().invoke(heatmap, ["--from", "2026-06-01"])
    assert drawn.exit_code == 0, drawn.output
    assert "herd at 2026-06-01T02:00:00Z: 9 jobs" in drawn.stdout
    data = json.loads(CliRunner().invoke(heatmap, ["--from", "2026-06-01", "--json"]).stdout)
    assert data["per_minute"][120] == 9
    assert datetime.fromisoformat(data["herds"][0]["minute"]) == datetime(2026, 6, 1, 2, tzinfo=UTC)
    assert CliRunner().invoke(heatmap, ["--from", "someday"]).exit_code == 2


def test_the_heatmap_of_nothing_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heatmap_module, "load_schedules", lambda _context: [])
    assert CliRunner().invoke(heatmap, []).exit_code == 0
