"""Should a failed attempt be tried again, and when? Pure.

`classify` names the sort of failure, a `Policy` says how a task wants that sort handled, `decide` puts the
two together.
"""

from cronq.retry.backoff import DEFAULT_WAIT, Exponential, Fixed, Linear, Wait
from cronq.retry.classify import TABLE, classify, register, retry_after_of
from cronq.retry.decide import Decision, decide
from cronq.retry.kinds import Kind
from cronq.retry.policy import Policy, policies_of, policy_for

__all__ = [
    "DEFAULT_WAIT",
    "TABLE",
    "Decision",
    "Exponential",
    "Fixed",
    "Kind",
    "Linear",
    "Policy",
    "Wait",
    "classify",
    "decide",
    "policies_of",
    "policy_for",
    "register",
    "retry_after_of",
]
