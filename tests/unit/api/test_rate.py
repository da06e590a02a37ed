"""A caller may burst, then goes at the rate; nobody pays for another."""

from cronq.api import rate
from cronq.api.rate import BURST_S, RateLimit


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_burst_passes_then_the_rate_holds_and_says_how_long_to_wait():
    clock = Clock()
    limit = RateLimit(2.0, clock)
    assert [limit.wait_s("ann") for _ in range(int(2 * BURST_S))] == [0.0] * int(2 * BURST_S)
    assert limit.wait_s("ann") == 0.5
    assert limit.wait_s("bob") == 0.0
    clock.now += 0.5
    assert limit.wait_s("ann") == 0.0
    assert limit.wait_s("ann") > 0


def test_a_flood_of_callers_costs_no_more_memory(monkeypatch):
    monkeypatch.setattr(rate, "MOST_BUCKETS", 10)
    limit = RateLimit(1.0, Clock())
    for number in range(100):
        assert limit.wait_s(f"10.0.0.{number}") == 0.0
    assert len(limit._buckets) <= 10
