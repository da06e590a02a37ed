"""How much may run at a time, how fast, and whose turn is it? Limits and tiers as they are declared. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

KINDS: Final = ("tenant", "task", "queue", "dependency")
TIER: Final = "tier"
OTHERS_SHARE: Final = 0.1
"""What all tenants without a tier are guaranteed together."""
OTHERS: Final = ""
BACKGROUND: Final = "background"
"""Catch-up and back-fill: the last whose turn it is, whoever's they are."""
_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h|d)")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BREAK_FOR_S: Final = 30.0
LONGEST_LOOK_S: Final = 10.0
"""How far back the starts of a rate-limited key are counted at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What one key may take up. `value` None: each value of the kind for itself."""

    kind: str
    value: str | None = None
    concurrency: int | None = None  #: jobs at a time, on all workers together
    rate: float | None = None  #: starts per second
    per_s: float = 1.0  #: the period that the rate was given in
    burst: int = 1  #: starts that may come at once after a pause
    backlog: int | None = None  #: messages that may wait on the broker
    tasks: tuple[str, ...] = ()  #: of a dependency: which tasks call it
    break_after: int | None = None  #: failures in a row after which none of its jobs go out
    break_for_s: float = BREAK_FOR_S  #: for how long, before one may try

    @property
    def counts_jobs(self) -> bool:
        """Whether it matters which jobs are going on."""
        return any(each is not None for each in (self.concurrency, self.rate, self.break_after))

    @property
    def look_s(self) -> float:
        """Over how many seconds starts are counted."""
        return min(self.per_s, LONGEST_LOOK_S)

    @property
    def starts_in_look(self) -> int | None:
        """How many starts there may be in any `look_s` seconds."""
        return None if self.rate is None else int(self.rate * self.look_s + 1e-9) + self.burst


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Tenants with a service level: a guaranteed share of any room, and who goes first in the rest."""

    name: str
    tenants: Mapping[str, int] = field(default_factory=dict)  #: each with its weight among them
    share: float = 0.0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything that was declared; empty: nothing is limited."""

    limits: Mapping[str, Limit] = field(default_factory=dict)
    tiers: Mapping[str, Tier] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.limits)

    def of(self, tenant: str | None, task: str, queue: str | None) -> list[tuple[str, Limit]]:
        """Return (key, limit) of each limit that counts for such a job; a value's own, else its kind's."""
        values = [("queue", queue), ("task", task), ("tenant", tenant)]
        found = [
            (f"{kind}:{value}", limit)
            for kind, value in values
            if value is not None
            and (limit := self.limits.get(f"{kind}:{value}") or self.limits.get(kind)) is not None
        ]
        found += [(key, limit) for key, limit in self.limits.items() if task in limit.tasks]
        return found

    def tier_of(self, tenant: str | None) -> tuple[str, int]:
        """Return a tenant's tier and its weight there."""
        for tier in self.tiers.values():
            if tenant is not None and tenant in tier.tenants:
                return tier.name, tier.tenants[tenant]
        return OTHERS, 1


def limits_from(data: Mapping[str, Mapping[str, Any]]) -> Limits:
    """Read limits as users write them; raise `ValueError` that names the key and what is wrong with it.

    `{"tenant": {"concurrency": 2}, "queue:mail": {"rate": "10/s"}, "tier:gold": {"tenants": ["acme"],
    "share": 0.5}}`
    """
    limits: dict[str, Limit] = {}
    tiers: dict[str, Tier] = {}
    for key, given in data.items():
        kind, colon, value = key.partition(":")
        try:
            if kind == TIER and value:
                tiers[key] = _tier(value, given)
            elif kind in KINDS and (value or (not colon and kind != "dependency")):
                limits[key] = _limit(kind, value or None, given)
            else:
                raise ValueError(  # noqa: TRY301 - it gets its key below, like the others
                    "write tenant, task or queue, one of them with :NAME, dependency:NAME or tier:NAME"
                )
        except (TypeError, ValueError) as error:
            raise ValueError(f"limit {key!r}: {error}") from None
    if sum(tier.share for tier in tiers.values()) > 1 - OTHERS_SHARE + 1e-9:
        raise ValueError(
            f"limits: the tiers' shares add up to more than {1 - OTHERS_SHARE}; the rest is the others'"
        )
    return Limits(limits, tiers)


def _limit(kind: str, value: str | None, given: Mapping[str, Any]) -> Limit:
    known = {"concurrency", "rate", "burst"}
    known |= {"queue": {"backlog"}, "dependency": {"tasks", "break_after", "break_for_s"}}.get(kind, set())
    _refuse_unknown(given, known)
    rate, per_s = _rate(given["rate"]) if "rate" in given else (None, 1.0)
    if "burst" in given and rate is None:
        raise ValueError("burst goes with a rate")
    tasks = _names("tasks", given.get("tasks", ()))
    if kind == "dependency" and not tasks:
        raise ValueError("say which tasks call it: tasks=[…]")
    break_for_s = given.get("break_for_s", BREAK_FOR_S)
    if isinstance(break_for_s, bool) or not isinstance(break_for_s, int | float) or break_for_s <= 0:
        raise ValueError(f"break_for_s {break_for_s!r} is not a number of seconds above 0")
    return Limit(
        kind=kind,
        value=value,
        concurrency=_count("concurrency", given),
        rate=rate,
        per_s=per_s,
        burst=_count("burst", given) or 1,
        backlog=_count("backlog", given),
        tasks=tasks,
        break_after=_count("break_after", given),
        break_for_s=float(break_for_s),
    )


def _tier(name: str, given: Mapping[str, Any]) -> Tier:
    _refuse_unknown(given, {"tenants", "share", "priority"})
    tenants = given.get("tenants", ())
    weights = dict(tenants) if isinstance(tenants, Mapping) else dict.fromkeys(_names("tenants", tenants), 1)
    if any(not isinstance(weight, int) or weight < 1 for weight in weights.values()):
        raise ValueError("a tenant's weight is a whole number from 1 on")
    share, priority = given.get("share", 0.0), given.get("priority", 0)
    if not isinstance(share, int | float) or not 0 <= share <= 1 - OTHERS_SHARE:
        raise ValueError(f"share {share!r} is not between 0 and {1 - OTHERS_SHARE}")
    if not isinstance(priority, int):
        raise TypeError(f"priority {priority!r} is not a whole number")
    return Tier(name=name, tenants=weights, share=float(share), priority=priority)


def _refuse_unknown(given: Mapping[str, Any], known: Iterable[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"there is no {unknown[0]!r}; there is {', '.join(sorted(known))}")


def _count(name: str, given: Mapping[str, Any]) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{name} {value!r} is not a whole number from 1 on")
    return value


def _names(what: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is a list of names")
    return tuple(map(str, given))


def _rate(text: object) -> tuple[float, float]:
    """Return (starts per second, seconds of the period) of `10/s`, `100/m`, `1000/h`, as Celery writes it."""
    match = _RATE.fullmatch(str(text))
    if match is None or float(match[1]) == 0:
        raise ValueError(f"rate {text!r} is not like 10/s, 100/m or 1000/h")
    per_s = _SECONDS[match[2]]
    return float(match[1]) / per_s, per_s
