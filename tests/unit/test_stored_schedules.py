"""A definition that another version of cronq wrote can be read."""

from datetime import timedelta

from cronq.schedule import CatchUp, Overlap, Schedule
from cronq.store.definitions import from_data, to_data

FULL = Schedule(
    name="n",
    task="t",
    timing={"kind": "every", "seconds": 60.0},
    args=("a",),
    overlap=Overlap.QUEUE,
    catch_up=CatchUp.ALL,
    jitter=timedelta(seconds=3),
    spread=timedelta(minutes=5),
)


def test_what_is_written_is_read_back():
    assert from_data(to_data(FULL)) == FULL


def test_a_field_that_an_older_version_did_not_know_has_its_default():
    data = to_data(FULL)
    del data["spread"]
    assert from_data(data).spread == timedelta(0)


def test_a_field_of_a_newer_version_is_left_alone():
    assert from_data({**to_data(FULL), "colour": "green"}) == FULL
