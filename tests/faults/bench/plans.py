"""Which faults are done to which installation, in which order: all decided by a seed."""

import itertools
import random
import time
from collections.abc import Iterator

from tests.faults.bench.catalogue import KINDS
from tests.faults.bench.run import Setup

TICKS = 32
BOTH_WAYS = (("redis", "sqlite"), ("rabbitmq", "postgresql"))
EVERY_WAY = tuple(itertools.product(("redis", "rabbitmq"), ("sqlite", "postgresql")))
STRETCH_S = 600.0
"""Seconds after which a soak judges what it has, and goes on with another installation."""
SAMPLE = (
    "leader killed",
    "poison",
    "worker frozen",
    "redis killed and emptied",
    "leader killed at after_publish_before_mark",
    "pool process killed",
    "leader cut off from redis",
    "postgresql restarted",
    "clock of leader an hour ahead",
    "worker killed at before_settle",
)
"""What CI has the time for. Together they make every counter of the coverage grow."""

Plan = tuple[Setup, Iterator[str]]


def every_fault_once(seed: int) -> list[Plan]:
    """Deal all faults to two installations, so that both brokers and both databases get their share."""
    chance = random.Random(seed)
    hands: list[list[str]] = [[] for _ in BOTH_WAYS]
    names = sorted(KINDS)
    chance.shuffle(names)
    for name in names:
        fitting = [hand for hand, way in zip(hands, BOTH_WAYS, strict=True) if KINDS[name].fits(*way)]
        min(fitting, key=len).append(name)
    # Those that fit one installation only were dealt anywhere among the others.
    for hand in hands:
        chance.shuffle(hand)
    return [(Setup(*way, seed, TICKS), iter(hand)) for way, hand in zip(BOTH_WAYS, hands, strict=True)]


def sample(seed: int) -> list[Plan]:
    """Return the three minutes that CI runs."""
    return [(Setup("rabbitmq", "postgresql", seed, TICKS), iter(SAMPLE))]


def soak(seed: int, hours: float) -> Iterator[Plan]:
    """Yield stretches of random faults on one installation after the other, until the time is over."""
    end = time.monotonic() + hours * 3600
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        way = EVERY_WAY[number % len(EVERY_WAY)]
        stretch = min(end, time.monotonic() + STRETCH_S)
        yield Setup(*way, seed + number, TICKS), _random_faults(way, seed + number, stretch)


def _random_faults(way: tuple[str, str], seed: int, until: float) -> Iterator[str]:
    chance = random.Random(seed)
    names = sorted(name for name, kind in KINDS.items() if kind.fits(*way))
    while time.monotonic() < until:
        yield chance.choice(names)
