"""Limits as users write them, and which of them count for a job."""

from typing import Any

import pytest

from cronq.limits import OTHERS, Limits, limits_from


def test_a_rate_is_written_as_celery_writes_it() -> None:
    rates = {text: limits_from({"tenant": {"rate": text}}).limits["tenant"].rate for text in ("10/s", "90/m")}
    assert rates == {"10/s": 10.0, "90/m": 1.5}


def test_a_value_s_own_limit_counts_instead_of_its_kind_s() -> None:
    limits = limits_from({"tenant": {"concurrency": 1}, "tenant:acme": {"concurrency": 9}})
    assert [limit.concurrency for _key, limit in limits.of("acme", "t", "q")] == [9]
    assert [(key, limit.concurrency) for key, limit in limits.of("globex", "t", "q")] == [
        ("tenant:globex", 1)
    ]
    assert limits.of(None, "t", "q") == []


def test_queue_task_tenant_and_dependency_count_together() -> None:
    limits = limits_from(
        {
            "dependency:bank": {"tasks": ["pay"], "rate": "5/s"},
            "queue:mail": {"backlog": 10},
            "task": {"concurrency": 3},
            "tenant": {"rate": "1/h"},
        }
    )
    keys = [key for key, _limit in limits.of("acme", "pay", "mail")]
    assert keys == ["queue:mail", "task:pay", "tenant:acme", "dependency:bank"]
    assert [key for key, _limit in limits.of("acme", "look", "web")] == ["task:look", "tenant:acme"]


@pytest.mark.parametrize(
    ("rate", "burst", "look_s", "starts"),
    [("10/s", 1, 1.0, 11), ("10/s", 5, 1.0, 15), ("60/m", 1, 10.0, 11), ("1/h", 1, 10.0, 1)],
)
def test_starts_are_counted_over_the_period_but_not_over_hours(
    rate: str, burst: int, look_s: float, starts: int
) -> None:
    limit = limits_from({"task": {"rate": rate, "burst": burst}}).limits["task"]
    assert (limit.look_s, limit.starts_in_look) == (look_s, starts)


def test_tenants_of_a_tier_may_have_weights() -> None:
    limits = limits_from(
        {"tier:gold": {"tenants": {"acme": 3}, "share": 0.5}, "tier:silver": {"tenants": ["globex"]}}
    )
    tiers = [limits.tier_of(tenant) for tenant in ("acme", "globex", "initech", None)]
    assert tiers == [("gold", 3), ("silver", 1), (OTHERS, 1), (OTHERS, 1)]


def test_nothing_declared_limits_nothing() -> None:
    assert not Limits()
    assert not limits_from({"tier:gold": {"tenants": ["acme"]}})


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"tenants": {"concurrency": 1}}, "limit 'tenants': write tenant, task or queue"),
        ({"dependency": {"rate": "1/s"}}, "limit 'dependency': write"),
        ({"dependency:x": {"rate": "1/s"}}, "say which tasks call it"),
        ({"dependency:x": {"tasks": "t", "rate": "1/s"}}, "tasks is a list"),
        ({"tenant": {"concurency": 1}}, "there is no 'concurency'; there is burst, concurrency, rate"),
        ({"tenant": {"concurrency": 0}}, "concurrency 0 is not a whole number from 1 on"),
        ({"tenant": {"concurrency": True}}, "concurrency True is not"),
        ({"tenant": {"rate": "10 per second"}}, "rate '10 per second' is not like 10/s"),
        ({"tenant": {"rate": "0/s"}}, "rate '0/s' is not"),
        ({"tenant": {"burst": 2}}, "burst goes with a rate"),
        ({"tenant": {"backlog": 2}}, "there is no 'backlog'"),
        ({"tier:gold": {"share": 0.95}}, "share 0.95 is not between 0 and 0.9"),
        ({"tier:a": {"share": 0.5}, "tier:b": {"share": 0.5}}, "tiers' shares add up to more than 0.9"),
        ({"tier:gold": {"tenants": {"acme": 0}}}, "weight is a whole number"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(written: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="limit") as caught:
        limits_from(written)
    assert says in str(caught.value)
