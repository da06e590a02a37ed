"""What the documents say about the code is true."""

import re
from pathlib import Path

import yaml

from cronq.job import TRANSITIONS
from cronq.retry import Kind
from cronq.settings import Settings

ALERTS = Path(__file__).parents[2] / "deploy" / "alerts.yaml"
DOCS = Path(__file__).parents[2] / "docs"


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
