"""Whose turn is it? Shares the room of one limit between tiers, and inside a tier between tenants. Pure.

Tiers: one that got less than its guaranteed share goes first; what no guarantee claims goes by priority.
Tenants: weighted round robin (start-time fair queueing), so that one with a hundred thousand waiting jobs
delays another by no more than its weight. Background work goes when nobody else can.
"""

import heapq
from collections.abc import Mapping
from itertools import count
from typing import Generic, Protocol, TypeVar

from cronq.limits import BACKGROUND, OTHERS, OTHERS_SHARE, Tier


class Party(Protocol):
    """Somebody who waits for a turn."""

    @property
    def tier(self) -> str:
        """Its tier's name."""

    @property
    def tenant(self) -> str:
        """Whose it is."""

    @property
    def weight(self) -> int:
        """Of its tenant among the tier's."""

    @property
    def urgency(self) -> tuple[int, float]:
        """Of two parties of one tenant the smaller one goes first."""


P = TypeVar("P", bound=Party)
LAST: Tier = Tier(name=BACKGROUND, priority=-1_000_000)
REST: Tier = Tier(name=OTHERS, share=OTHERS_SHARE)


def all_tiers(declared: Mapping[str, Tier]) -> dict[str, Tier]:
    """Return the declared tiers by name, with those that everybody else belongs to."""
    return {tier.name: tier for tier in declared.values()} | {OTHERS: REST, BACKGROUND: LAST}


class Turns(Generic[P]):
    """Parties in a fair order. One that was served is put back by whoever knows that it still waits."""

    def __init__(self, tiers: Mapping[str, Tier]) -> None:
        self._tiers = tiers  # as `all_tiers` gives them
        self._waiting: dict[str, _Round[P]] = {}
        self._owed: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def push(self, party: P) -> None:
        """Let `party` wait."""
        if party.tier not in self._waiting:
            self._waiting[party.tier] = _Round()
            self._owed.setdefault(party.tier, 0.0)
        self._waiting[party.tier].push(party)

    def pop(self) -> P:
        """Take out whose turn it is; it counts as served only with `charge`."""
        name = max(self._waiting, key=self._rank)
        line = self._waiting[name]
        party = line.pop()
        if not line:
            del self._waiting[name]
        return party

    def charge(self, party: P) -> None:
        """Note that `party` got what it waited for; before it is put back, if it is."""
        for name in {party.tier, *self._waiting}:
            owed = self._owed.get(name, 0.0) + self._tiers[name].share
            # What it got beyond its share by its priority is not held against it.
            self._owed[name] = max(0.0, owed - 1.0) if name == party.tier else owed
        if party.tier in self._waiting:
            self._waiting[party.tier].charge(party)
        for name in [name for name in self._owed if name not in self._waiting and name != party.tier]:
            del self._owed[name]

    def _rank(self, name: str) -> tuple[bool, float, int, float]:
        owed, tier = self._owed.get(name, 0.0), self._tiers[name]
        due = owed >= 1.0 - 1e-9
        return due, owed if due else 0.0, tier.priority, owed


class _Round(Generic[P]):
    """The tenants of one tier."""

    def __init__(self) -> None:
        self._order: list[tuple[float, int, str]] = []  # (start tag, tie, tenant), one entry a tenant
        self._parties: dict[str, list[P]] = {}
        self._tags: dict[str, float] = {}
        self._now = 0.0
        self._tie = count()

    def __len__(self) -> int:
        return sum(map(len, self._parties.values()))

    def push(self, party: P) -> None:
        mine = self._parties.get(party.tenant)
        if mine is None:
            mine = self._parties[party.tenant] = []
            self._enter(party.tenant)
        mine.append(party)

    def pop(self) -> P:
        while True:
            start, _tie, tenant = heapq.heappop(self._order)
            if start >= self._tags.get(tenant, 0.0) - 1e-12:
                break
            self._enter(tenant)  # it was served since it got in line
        self._now = start
        mine = self._parties[tenant]
        party = min(mine, key=lambda each: each.urgency)
        mine.remove(party)
        if mine:
            self._enter(tenant)
        else:
            del self._parties[tenant]
        return party

    def charge(self, party: P) -> None:
        served = max(self._now, self._tags.get(party.tenant, 0.0))
        self._tags[party.tenant] = served + 1.0 / party.weight

    def _enter(self, tenant: str) -> None:
        start = max(self._now, self._tags.get(tenant, 0.0))
        heapq.heappush(self._order, (start, next(self._tie), tenant))
