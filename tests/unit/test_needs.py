"""What jobs need and workers offer, as queues."""

import pytest

from cronq import cron
from cronq.declaration import needs_text
from cronq.needs import Needs, needs_from, offered_queues, parse


@pytest.mark.parametrize("text", ["cpu", "cpu@eu-west", "cpu@eu-west.a,eu-west,eu+0", "memory+2.5"])
def test_needs_are_written_as_they_are_read(text: str) -> None:
    assert str(parse(text)) == text


def test_needs_are_given_in_words_or_as_text() -> None:
    wanted = Needs("cpu", ("eu-west.a", "eu-west"), 120.0)
    words = {"machine": "cpu", "places": ["eu-west.a", "eu-west"], "spill_after": "2m"}
    assert parse(needs_text(words)) == parse("cpu@eu-west.a,eu-west+120") == wanted
    assert wanted.queues == ("cpu.eu-west.a", "cpu.eu-west")
    assert parse("io").queues == ("io",), "anywhere"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "is not like cpu"),
        ("cpu@", "is not like cpu"),
        ("cpu@eu west", "is not like cpu"),
        ("c" * 300, "is not like cpu"),
        ({"places": ["eu"]}, "is not like cpu"),
        ({"machine": "cpu", "place": "eu"}, "they have machine, places, spill_after"),
        ({"machine": "cpu", "places": "eu"}, "places is a list"),
        ({"machine": "cpu", "spill_after": -1}, "not a number of seconds"),
    ],
)
def test_what_is_no_need_is_refused_with_what_would_be(given: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        needs_from(given)  # type: ignore[arg-type]


def test_a_worker_offers_its_zone_its_region_and_anywhere() -> None:
    assert offered_queues(["cpu", "io"], "eu-west.a") == [
        "cpu.eu-west.a", "cpu.eu-west", "cpu", "io.eu-west.a", "io.eu-west", "io",
    ]  # fmt: skip
    assert offered_queues(["cpu"]) == ["cpu"]


def test_a_schedule_has_a_queue_or_needs() -> None:
    assert cron("@daily", needs="cpu@eu").policy == {"needs": "cpu@eu"}
    with pytest.raises(TypeError, match="not both"):
        cron("@daily", needs="cpu@eu", queue="q")
