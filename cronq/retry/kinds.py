"""The sorts of failures."""

from enum import StrEnum


class Kind(StrEnum):
    """The sort of a failure. It is stored with each attempt and each dead letter."""

    ERROR = "error"  #: the task raised something that the table does not know
    RETRY = "retry"  #: the task asked for another attempt, without an error that the table knows
    NETWORK = "network"  #: a connection failed: another try may find the other side back
    DEADLOCK = "deadlock"  #: the database gave this transaction up for another one
    RESOURCE_EXHAUSTED = "resource_exhausted"  #: memory, disk, file handles or connections ran out
    RATE_LIMITED = "rate_limited"  #: the other side said when to come back
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"  #: its worker went silent
    PERMANENT = "permanent"  #: another try cannot help
    WRONG_ARGUMENTS = "wrong_arguments"  #: the function does not accept them
    UNKNOWN_TASK = "unknown_task"  #: the worker that got it has no such task
    UNDECODABLE = "undecodable"  #: the message's body is not what its headers say
    MALFORMED = "malformed"  #: it is no task message
    OVERSIZED = "oversized"  #: more arguments than `CRONQ_MAX_PAYLOAD_BYTES`


FINAL = frozenset(
    {
        Kind.PERMANENT,
        Kind.WRONG_ARGUMENTS,
        Kind.UNKNOWN_TASK,
        Kind.UNDECODABLE,
        Kind.MALFORMED,
        Kind.OVERSIZED,
    }
)
"""Kinds for which another try cannot help."""
