"""WHEN is a job due? Pure: values in, values out."""

from cronq.timing.base import Omission, Timing, fires_between, omissions
from cronq.timing.bounds import Bounded, Union, after_end
from cronq.timing.calendars import Calendar, calendar_from
from cronq.timing.catch_up import CaughtUp, Decision, Fold, catch_up
from cronq.timing.cron import Cron
from cronq.timing.data import timing_from, timing_to_show, with_calendars, with_hash_id
from cronq.timing.durations import duration
from cronq.timing.errors import InvalidTiming
from cronq.timing.exclusions import Excluding
from cronq.timing.jitter import group_offset, jitter
from cronq.timing.periods import At, Delay, Every, Unreadable
from cronq.timing.rrule import RRule

__all__ = [
    "At",
    "Bounded",
    "Calendar",
    "CaughtUp",
    "Cron",
    "Decision",
    "Delay",
    "Every",
    "Excluding",
    "Fold",
    "InvalidTiming",
    "Omission",
    "RRule",
    "Timing",
    "Union",
    "Unreadable",
    "after_end",
    "calendar_from",
    "catch_up",
    "duration",
    "fires_between",
    "group_offset",
    "jitter",
    "omissions",
    "timing_from",
    "timing_to_show",
    "with_calendars",
    "with_hash_id",
]
