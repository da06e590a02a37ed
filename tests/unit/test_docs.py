"""What the documents say about the code is true."""

import ast
import inspect
import re
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
import yaml
from celery import _state

from cronq import cron, enqueue
from cronq.api.asked import ScheduleIn
from cronq.cli.schedule_writing import add
from cronq.job import TRANSITIONS
from cronq.retry import Kind
from cronq.schedule import CatchUp, Overlap, Reason, Schedule
from cronq.settings import Settings
from cronq.testing import Ran, Timeline

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "alerts.yaml"
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]


def table(page, head):
    """Return the rows of the table that begins with `head`, each as its cells."""
    rows = (DOCS / page).read_text().partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in rows]


def named(cell):
    return re.findall(r"`\*?([a-z_]+)`", cell)


def test_the_settings_page_lists_every_setting_with_its_default_and_meaning():
    page = (DOCS / "settings.md").read_text()
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        assert f"| `CRONQ_{name.upper()}` | {default} | {field.description} |" in page


def test_the_drawing_of_the_states_has_every_transition_and_no_other():
    page = (DOCS / "architecture.md").read_text()
    drawing = page.partition("```mermaid")[2].partition("```")[0]
    drawn = {
        (line.split("-->")[0].strip(), line.split("-->")[1].partition(":")[0].strip())
        for line in drawing.splitlines()
        if "-->" in line and "[*]" not in line
    }
    buried = {("SCHEDULED", "FAILED"), ("PENDING", "FAILED"), ("RETRYING", "FAILED")}
    coded = {(before.value, after.value) for before, afters in TRANSITIONS.items() for after in afters}
    assert drawn == coded - buried


def test_the_page_on_failures_has_every_kind_and_no_other():
    page = (DOCS / "howto" / "failures.md").read_text()
    table = page.partition("| kind | what it is |")[2].partition("\n\n")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert named == set(Kind)


def test_the_alerts_go_by_metrics_that_there_are():
    page = (DOCS / "api.md").read_text()
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"cronq_\w+", rule["expr"])}
    assert named
    assert {name for name in named if f"`{name}" not in page} == set()


def accepted():
    """Return what a schedule takes, as it says itself when it is given something else."""
    with pytest.raises(TypeError) as refused:
        cron("* * * * *", nonsense=1)
    policy = str(refused.value).partition("it has ")[2].split(", ")
    own = inspect.signature(cron).parameters.values()
    return {each.name for each in own if each.kind is each.KEYWORD_ONLY} | set(policy)


def test_the_page_on_schedules_has_everything_that_a_schedule_takes_and_no_more():
    rows = table("schedules.md", "| say | default | means |")
    assert sorted(name for row in rows for name in named(row[0])) == sorted(accepted())


def as_written(default):
    if default is None or default in ((), {}):
        return ("", "none")
    if isinstance(default, timedelta):
        return (f"`{default.total_seconds():g}s`", f"`{default / timedelta(hours=1):g}h`")
    return (f"`{default}`",)


def test_the_page_on_schedules_has_their_defaults():
    of_name = {name: row[1] for row in table("schedules.md", "| say | default |") for name in named(row[0])}
    policies = [each for each in fields(Schedule) if each.name in of_name and each.name != "name"]
    assert len(policies) > 15
    for each in policies:
        made = each.default_factory() if callable(each.default_factory) else each.default
        assert of_name[each.name] in as_written(made), each.name
    for each in inspect.signature(cron).parameters.values():
        if each.kind is each.KEYWORD_ONLY:
            assert of_name[each.name] in as_written(each.default), each.name


def test_the_page_on_schedules_says_what_the_api_and_the_command_line_leave_out():
    by_code = {"name", "day", "start", "end", "limit", "exclude", "if_excluded"}
    timings = {"task", "cron", "every", "delay", "at", "rrule"}
    assert accepted() - set(ScheduleIn.model_fields) == by_code
    assert set(ScheduleIn.model_fields) - accepted() == timings
    options = {parameter.name for parameter in add.params} - timings - {"as_json"}
    assert accepted() - options == by_code - {"name"} | {"fan_out", "on_complete", "after"}
    page = " ".join((DOCS / "schedules.md").read_text().split())
    said = page.partition("The API takes all of them but")[2].partition("##")[0]
    assert set(named(said.partition(";")[0])) == by_code
    assert set(named(said.partition(";")[2])) == {"fan_out", "on_complete", "after"}


def test_the_page_on_schedules_has_every_way_to_overlap_and_to_catch_up():
    assert [row[0].strip("`") for row in table("schedules.md", "| `overlap` | the new")] == list(Overlap)
    (row,) = [row for row in table("schedules.md", "| say | default |") if row[0] == "`catch_up`"]
    assert set(named(row[2])) == set(CatchUp)


def test_the_page_on_running_has_every_reason_why_a_fire_time_does_not_run():
    page = (DOCS / "operations" / "running.md").read_text()
    said = page.partition("with its reason:")[2].partition("\n\n")[0]
    assert set(named(said)) & set(Reason) == set(Reason)


def test_the_page_on_asking_for_a_job_has_every_argument_and_no_other():
    rows = table("howto/enqueue.md", "| argument | means | default |")
    assert sorted(name for row in rows for name in named(row[0])) == sorted(
        inspect.signature(enqueue).parameters
    )


def test_the_page_on_testing_has_all_of_a_timeline_and_of_what_became_of_a_fire_time():
    rows = table("howto/testing.md", "| `Ran` | |")
    assert sorted(name for row in rows for name in named(row[0])) == sorted(f.name for f in fields(Ran))
    page = (DOCS / "howto" / "testing.md").read_text()
    methods = {name for name in vars(Timeline) if not name.startswith("_")}
    assert set(re.findall(r"^\| `\.(\w+)", page, re.MULTILINE)) == methods | {"now"}


def test_the_example_of_the_page_on_testing_passes(monkeypatch):
    its_own = []  # what the example declares is no other test's, nor is its app
    for module in ("cronq.declaration", "cronq.beat.catalog"):
        monkeypatch.setattr(f"{module}.declared", its_own)
    monkeypatch.setattr(_state._tls, "current_app", None)
    app, tests = re.findall(r"```python\n(.*?)```", (DOCS / "howto" / "testing.md").read_text(), re.DOTALL)
    shop, found = ModuleType("shop"), {}
    monkeypatch.setitem(sys.modules, "shop", shop)
    exec(app, vars(shop))
    exec(tests, found)
    cases = [test for name, test in found.items() if name.startswith("test_")]
    assert len(cases) == 2
    for case in cases:
        case()


def anchors(page):
    """Return the anchors of a page's headings, as they are made on GitHub."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_picture_of_a_page_leads_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in link:
            continue
        path, _, anchor = unquote(link).partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            lost.append(link)
    assert lost == []


def logged(module):
    """Return the names of the events that a module logs."""
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(ast.Name("log")), args=[ast.Constant(str(event)), *_]) if (
                "." in event
            ):
                yield event


def test_the_page_on_log_events_has_every_event_and_no_other():
    events = {event for module in (ROOT / "cronq").rglob("*.py") for event in logged(module)}
    rows = (DOCS / "operations" / "log-events.md").read_text().splitlines()
    said = [
        name for row in rows for name in re.findall(r"`([a-z_.]+)`", row.split("|")[1] if "|" in row else "")
    ]
    assert sorted(said) == sorted(events)
