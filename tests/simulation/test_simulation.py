"""cronq lives through simulated faults; and the simulation is what it says it is."""

import random
from collections import Counter

import pytest
import redis

from .fake_redis import SCRIPTS, RedisServer
from .faults import KINDS
from .kernel import Kernel
from .patching import on_stage
from .run import EPISODES, server, simulate

LIVES = 100
COVERED = frozenset({
    "ambush.kill", "ambush.freeze", "answer.lost", "beat.fenced", "bodies", "clock.trouble", "delivery.lost",
    "fire.skipped", "job.refused", "job.rescued", "job.settle_refused", "leadership.lost", "lease.lost",
    "message.lost",
    "publish.failed", "publish.repeated", *(f"fault.{kind}" for kind in KINDS),
})  # fmt: skip
"""A run in which any of these did not happen proves nothing."""

REGRESSIONS = (
    (13, "a beat went round and round while its broker was away"),
    (64, "a dead leader's lock held for an hour, because the clock of Redis was set back"),
    (2, "the jumped clock of Redis was followed as soon as SQL did not answer"),
)
"""Seeds that once found something; the mutants show that they still would."""


def test_cronq_lives_through_a_sample_of_faults() -> None:
    counts = Counter[str]()
    with on_stage():
        for seed in range(1000, 1000 + LIVES):
            outcome = simulate(seed)
            assert outcome.violations == [], f"seed {seed}; python -m tests.simulation --trace --seed {seed}"
            assert len(outcome.faults) >= 2 * EPISODES
            counts += outcome.counts
    assert COVERED - counts.keys() == set()


@pytest.mark.parametrize(("seed", "found"), REGRESSIONS)
def test_what_was_found_once_stays_mended(seed: int, found: str) -> None:
    with on_stage():
        assert simulate(seed).violations == [], found


def test_a_seed_lives_the_same_life_again() -> None:
    with on_stage():
        first, again = (simulate(6, trace=True) for _ in range(2))
    assert len(first.trace) > 200
    assert first.trace == again.trace


def test_the_short_way_to_sql_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_stage():
        for seed in (3, 4, 5):
            short = simulate(seed, trace=True)
            with monkeypatch.context() as patch:
                sql = server(frozenset())
                patch.setattr(sql, "short", sql.connection)
                assert simulate(seed, trace=True).trace == short.trace


def test_redis_is_like_redis(redis_url: str) -> None:
    """The same commands in the same order get the same answers from the real one."""
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    chance, fake = random.Random(1), RedisServer(Kernel(1))
    names = {function: client.register_script(text) for text, function in SCRIPTS.items()}
    for _ in range(400):
        function, real = chance.choice(list(names.items()))
        holder, ttl_ms = chance.choice("abc"), chance.choice((60_000, 120_000))
        done = function(fake, "lock", holder, *((ttl_ms,) if function.__name__ != "_release" else ()))
        assert real(keys=["lock"], args=[holder, ttl_ms]) == done
        assert client.get("lock") == fake.get("lock")
        assert round(max(client.pttl("lock"), 0) / 60_000) == round(fake.left_s("lock") / 60)
        if chance.random() < 0.1:
            client.delete("lock")
            fake.delete("lock")
