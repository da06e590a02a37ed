"""The judge of the fault bench finds what it is there to find, and nothing where all went well."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.bench.checker import Verdict, check, deadline
from tests.faults.bench.history import AttemptRow, Demanded, Expected, Fault, History, Row
from tests.faults.bench.journal import Line
from tests.faults.bench.measures import coverage, handovers, recovery, rescues

FIRES = 10


def line(what: str, n: int, at: float, *, schedule: str = "s", process: str = "w1", attempt: int = 1) -> Line:
    return Line(what, f"{schedule}-{n}", schedule, n * 1000, attempt, process, 7, at)


def clean_history(overlap: str = "allow") -> History:
    """Return a run of ten seconds in which one schedule fired each second and everything went well."""
    history = History(
        lock_s=1.0, lease_s=3.0, expected=[], demanded=[], lines=[], rows=[], attempts=[], faults=[]
    )
    for n in range(1, FIRES + 1):
        history.expected.append(Expected("s", n * 1000, float(n), overlap, "all"))
        history.lines += [
            Line("sent", f"s-{n}", "-", -1, 0, "b1", 1, n + 0.01),
            line("start", n, n + 0.02),
            line("end", n, n + 0.3),
        ]
        history.rows.append(Row(f"s-{n}", "s", n * 1000, "COMPLETED", None, None))
        history.attempts.append(AttemptRow(f"s-{n}", 1, "COMPLETED"))
    return history


def found(verdict: Verdict) -> set[str]:
    return {kind for kind, stories in verdict.violations.items() if stories}


def test_a_run_in_which_all_went_well_is_clean() -> None:
    verdict = check(clean_history())
    assert verdict.clean
    assert verdict.dispositions == {"COMPLETED": FIRES}
    assert len(verdict.lateness) == FIRES


def drop(history: History, n: int, *, row: bool = True) -> None:
    history.lines = [each for each in history.lines if each.job != f"s-{n}"]
    if row:
        history.rows = [each for each in history.rows if each.job != f"s-{n}"]
        history.attempts = [each for each in history.attempts if each.job != f"s-{n}"]


def become(history: History, n: int, **changes: object) -> None:
    history.rows = [replace(row, **changes) if row.job == f"s-{n}" else row for row in history.rows]


def shift(history: History, n: int, by: float) -> None:
    history.lines = [
        replace(each, at=each.at + by) if each.job == f"s-{n}" else each for each in history.lines
    ]


def no_disposition(history: History) -> None:
    drop(history, 4)


def two_jobs(history: History) -> None:
    history.rows.append(Row("other", "s", 4000, "COMPLETED", None, None))
    history.attempts.append(AttemptRow("other", 1, "COMPLETED"))
    history.lines += [replace(line("start", 4, 4.1), job="other"), replace(line("end", 4, 4.2), job="other")]


def ran_twice(history: History) -> None:
    history.lines += [line("start", 4, 4.6, attempt=2), line("end", 4, 4.7, attempt=2)]


def never_ran(history: History) -> None:
    drop(history, 4, row=False)


def still_running(history: History) -> None:
    become(history, 4, state="RUNNING")
    history.attempts = [each for each in history.attempts if each.job != "s-4"]


def too_late(history: History) -> None:
    shift(history, 4, 3.5)


def too_early(history: History) -> None:
    shift(history, 4, -0.2)


def not_its_time(history: History) -> None:
    history.lines.append(replace(line("start", 4, 4.5), fire_ms=4500, job="odd"))


def ended_badly(history: History) -> None:
    become(history, 4, state="FAILED")
    history.attempts = [
        replace(each, outcome="FAILED") if each.job == "s-4" else each for each in history.attempts
    ]


def settled_twice(history: History) -> None:
    history.attempts.append(AttemptRow("s-4", 2, "COMPLETED"))


def skipped_for_nothing(history: History) -> None:
    drop(history, 4)
    history.rows.append(Row("s-4", "s", 4000, "SKIPPED", "overlap", None))


def skipped_and_ran(history: History) -> None:
    become(history, 4, state="SKIPPED", reason="overlap")
    history.attempts = [each for each in history.attempts if each.job != "s-4"]


def somebody_ended(history: History) -> None:
    history.ended.append("b1 ended with 1")


def two_send(history: History) -> None:
    sent = [Line("sent", f"x{n}", "-", -1, 0, f"b{1 + n % 2}", 1, 20 + n / 10) for n in range(20)]
    history.lines += sent


SEEDED = {
    no_disposition: "missing",
    two_jobs: "doubled",
    ran_twice: "doubled",
    never_ran: "lost",
    still_running: "stuck",
    too_late: "late",
    too_early: "early",
    not_its_time: "unexpected",
    ended_badly: "failed",
    settled_twice: "doubly settled",
    skipped_for_nothing: "wrongly skipped",
    skipped_and_ran: "wrongly skipped",
    somebody_ended: "unexplained",
    two_send: "two leaders",
}


@pytest.mark.parametrize(("harm", "kind"), SEEDED.items(), ids=[harm.__name__ for harm in SEEDED])
def test_every_kind_of_harm_is_found_and_called_by_its_name(
    harm: Callable[[History], None], kind: str
) -> None:
    history = clean_history()
    harm(history)
    assert found(check(history)) == {kind}


def overlapping(process: str = "w1") -> History:
    history = clean_history(overlap="skip")
    history.lines = [
        replace(each, at=5.5, process=process) if each.job == "s-4" and each.what == "end" else each
        for each in history.lines
    ]
    return history


def test_bodies_side_by_side_are_found_where_the_schedule_does_not_allow_it() -> None:
    assert found(check(overlapping())) == {"overlap"}
    history = overlapping()
    history.expected = [replace(each, overlap="allow") for each in history.expected]
    assert check(history).clean


def test_the_body_of_a_frozen_worker_may_go_on_beside_the_next_one() -> None:
    history = overlapping()
    history.faults.append(Fault("worker frozen", 4.1, 5.4, hurt=frozenset(["w1"])))
    assert check(history).clean


def test_a_fire_time_may_be_skipped_while_the_one_before_goes_on() -> None:
    history = overlapping()
    drop(history, 5)
    history.rows.append(Row("s-5", "s", 5000, "SKIPPED", "overlap", None))
    assert check(history).clean


def test_a_fault_excuses_the_second_run_only_of_what_its_victim_ran() -> None:
    history = clean_history()
    ran_twice(history)
    history.faults.append(Fault("worker killed", 4.1, 4.1, hurt=frozenset(["w2"])))
    assert found(check(history)) == {"doubled"}
    history.faults[0] = replace(history.faults[0], hurt=frozenset(["w1"]))
    assert check(history).clean


def test_a_retry_that_the_body_asked_for_is_no_double() -> None:
    history = clean_history()
    ran_twice(history)
    history.expected = [replace(each, fails_first=True) for each in history.expected]
    assert check(history).clean


@pytest.mark.parametrize(
    "harm", [no_disposition, two_jobs, never_ran, still_running, too_early, settled_twice]
)
def test_no_fault_excuses_a_missing_doubled_stuck_or_early_job(harm: Callable[[History], None]) -> None:
    history = clean_history()
    harm(history)
    history.faults.append(Fault("everything", 0.0, 30.0, hurt=frozenset(["w1"])))
    assert found(check(history))


def test_a_fault_excuses_lateness_until_its_end_and_the_time_to_recover() -> None:
    history = clean_history()
    shift(history, 4, 6.0)
    history.faults.append(Fault("redis killed", 3.9, 6.0, recover_s=5.0))
    assert check(history).clean
    history.faults[0] = replace(history.faults[0], recover_s=1.0)
    assert found(check(history)) == {"late"}


def test_faults_that_follow_each_other_do_not_put_a_deadline_off_for_ever() -> None:
    faults = [Fault("f", start, start + 1.0, recover_s=15.0) for start in range(10, 1000, 5)]
    # Of the 15 s and what follows in them, one in five is broken.
    assert deadline(faults, 10.0, 2.0) < 10 + 3 + 15 + 6


@pytest.mark.parametrize(
    ("state", "kinds"), [("COMPLETED", set()), ("RUNNING", {"stuck"}), ("FAILED", {"failed"})]
)
def test_a_demanded_job_has_to_complete(state: str, kinds: set[str]) -> None:
    history = clean_history()
    history.demanded.append(Demanded("d", 4.0))
    history.rows.append(Row("d", None, None, state, None, None))
    history.lines += [Line(what, "d", "-", -1, 1, "w1", 7, 4.5) for what in ("start", "end")]
    if state == "COMPLETED":
        history.attempts.append(AttemptRow("d", 1, "COMPLETED"))
    assert found(check(history)) == kinds


def test_a_poison_job_has_to_fail_and_may_run_more_than_once() -> None:
    history = clean_history()
    history.demanded.append(Demanded("d", 4.0, poison=True))
    history.rows.append(Row("d", None, None, "FAILED", None, None))
    history.lines += [Line("start", "d", "-", -1, attempt, "wp", 7, 4.0 + attempt) for attempt in (1, 2, 3)]
    assert check(history).clean


def test_hand_overs_rescues_and_recoveries_are_measured_from_the_fault_on() -> None:
    history = clean_history()
    history.expected = [replace(each, schedule="pulse") for each in history.expected]
    history.rows = [replace(each, schedule="pulse") for each in history.rows]
    rest = [replace(each, schedule="pulse") for each in history.lines if each.job not in ("s-4", "s-5")]
    # The fourth loses its worker and runs again; the fifth waits for a new leader.
    story = [
        ("start", 4, 4.02, 1),
        ("start", 5, 5.9, 1),
        ("end", 5, 6.0, 1),
        ("start", 4, 7.5, 2),
        ("end", 4, 7.6, 2),
    ]
    ours = [
        replace(line(what, n, at, schedule="pulse", process=f"w{attempt}", attempt=attempt), job=f"s-{n}")
        for what, n, at, attempt in story
    ]
    history.lines = sorted(rest + ours, key=lambda each: each.at)
    history.faults.append(
        Fault("both killed", 4.1, 4.1, hurt=frozenset(["w1"]), deadly=True, handover=True, recover_s=5.0)
    )
    verdict = check(history)
    assert verdict.clean
    assert handovers(history, verdict) == pytest.approx([1.8])
    assert rescues(history) == pytest.approx([3.4])
    assert recovery(history, verdict, history.faults[0]) == pytest.approx(1.8)
    assert coverage(history)["kills_of_live_tasks"] == 1
