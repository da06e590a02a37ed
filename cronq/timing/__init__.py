"""WHEN is a job due? Pure: values in, values out."""

from cronq.timing.base import Timing, fires_between
from cronq.timing.catch_up import CaughtUp, Decision, Fold, catch_up
from cronq.timing.cron import Cron
from cronq.timing.data import timing_from, with_hash_id
from cronq.timing.durations import duration
from cronq.timing.errors import InvalidTiming
from cronq.timing.jitter import group_offset, jitter
from cronq.timing.periods import At, Delay, Every

__all__ = [
    "At",
    "CaughtUp",
    "Cron",
    "Decision",
    "Delay",
    "Every",
    "Fold",
    "InvalidTiming",
    "Timing",
    "catch_up",
    "duration",
    "fires_between",
    "group_offset",
    "jitter",
    "timing_from",
    "with_hash_id",
]
