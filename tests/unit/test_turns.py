"""Whose turn is it: shares between tiers, weights between tenants, background work last."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from cronq.beat.turns import Turns, all_tiers
from cronq.limits import BACKGROUND, OTHERS, Tier


@dataclass(eq=False)
class Queue:
    """One tenant's jobs."""

    tenant: str
    jobs: int
    tier: str = OTHERS
    weight: int = 1
    urgency: tuple[int, float] = (0, 0.0)


def served(queues: list[Queue], rounds: int, tiers: Mapping[str, Tier] | None = None) -> list[str]:
    """Whose jobs go out, in this order."""
    turns: Turns[Queue] = Turns(all_tiers(tiers or {}))
    for queue in queues:
        turns.push(queue)
    order = []
    while turns and len(order) < rounds:
        queue = turns.pop()
        order.append(queue.tenant)
        queue.jobs -= 1
        turns.charge(queue)
        if queue.jobs:
            turns.push(queue)
    return order


def test_a_tenant_with_ten_jobs_waits_for_ten_of_the_one_with_a_hundred_thousand() -> None:
    order = served([Queue("large", 100_000), Queue("small", 10)], 30)
    assert order[:20].count("small") == 10


def test_one_that_comes_later_is_neither_behind_the_backlog_nor_ahead_of_its_share() -> None:
    turns: Turns[Queue] = Turns(all_tiers({}))
    large, late = Queue("large", 1000), Queue("late", 1000)
    turns.push(large)
    order = []
    for step in range(200):
        if step == 100:
            turns.push(late)
        queue = turns.pop()
        order.append(queue.tenant)
        turns.charge(queue)
        turns.push(queue)
    assert 49 <= order[100:].count("late") <= 51


@given(some.lists(some.integers(1, 5), min_size=2, max_size=6))
def test_tenants_get_by_weight_and_never_wait_longer_than_one_round(weights: list[int]) -> None:
    queues = [Queue(f"t{number}", 10_000, weight=weight) for number, weight in enumerate(weights)]
    whole = sum(weights)
    order = served(queues, whole * 20)
    got = Counter(order)
    for queue in queues:
        assert abs(got[queue.tenant] - queue.weight * 20) <= queue.weight
        places = [place for place, tenant in enumerate(order) if tenant == queue.tenant]
        assert max(later - earlier for earlier, later in pairwise(places)) <= whole * 2


@given(some.floats(0.0, 0.45), some.floats(0.0, 0.45), some.integers(-3, 3), some.integers(-3, 3))
def test_a_tier_gets_its_share_whatever_the_priorities(
    gold: float, silver: float, first: int, second: int
) -> None:
    tiers = {
        "tier:gold": Tier(name="gold", share=gold, priority=first),
        "tier:silver": Tier(name="silver", share=silver, priority=second),
    }
    queues = [Queue("a", 10_000, "gold"), Queue("b", 10_000, "silver"), Queue("c", 10_000)]
    got = Counter(served(queues, 400, tiers))
    for tenant, share in (("a", gold), ("b", silver), ("c", 0.1)):
        assert got[tenant] >= share * 400 - 3


def test_what_no_guarantee_claims_goes_by_priority() -> None:
    tiers = {"tier:gold": Tier(name="gold", share=0.0, priority=1)}
    got = Counter(served([Queue("a", 10_000, "gold"), Queue("b", 10_000)], 100, tiers))
    assert 9 <= got["b"] <= 10


def test_background_work_waits_until_nobody_else_does() -> None:
    order = served([Queue("a", 5, BACKGROUND), Queue("b", 50), Queue("a", 50)], 105)
    assert Counter(order[:100]) == {"a": 50, "b": 50}
    assert order[100:] == ["a"] * 5


def test_of_one_tenant_the_most_urgent_goes_first() -> None:
    turns: Turns[Queue] = Turns(all_tiers({}))
    late, soon, first = (Queue("acme", 1, urgency=urgency) for urgency in ((0, 9.0), (0, 1.0), (-5, 99.0)))
    for queue in (late, soon, first):
        turns.push(queue)
    assert [turns.pop() for _ in range(3)] == [first, soon, late]
    assert not turns


def test_looking_at_one_without_serving_it_costs_it_nothing() -> None:
    turns: Turns[Queue] = Turns(all_tiers({}))
    a, b = Queue("a", 9), Queue("b", 9)
    turns.push(a)
    turns.push(b)
    for _ in range(5):
        looked_at = [turns.pop(), turns.pop()]
        for queue in looked_at:
            turns.push(queue)
    order = []
    for _ in range(10):
        queue = turns.pop()
        order.append(queue.tenant)
        turns.charge(queue)
        turns.push(queue)
    assert Counter(order) == {"a": 5, "b": 5}
