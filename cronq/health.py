"""Was a process heard from lately? For health checks: cheap, where `celery inspect ping` costs a second."""

import sys

from cronq.coordination.redis_client import RedisError, open_redis
from cronq.coordination.roll_call import RollCall
from cronq.settings import load_settings


def heard_from(kind: str, host: str) -> int:
    """Return 0 if a `kind` ("beat" or "worker") on `host` was heard from lately, or Redis is away; else 1."""
    settings = load_settings()
    try:
        notes = RollCall(open_redis(settings.redis_url), prefix=settings.key_prefix, kind=kind).read()
    except RedisError as error:
        sys.stdout.write(f"Redis does not answer ({error}); the {kind} is left alone\n")
        return 0
    mine = [note for note in notes if note["host"] == host]
    sys.stdout.write(f"{len(mine)} {kind}(s) on {host} heard from lately\n")
    return 0 if mine else 1
