"""HOW FAR is it? The task body reports, Redis shows it live, SQL keeps the last word."""

from cronq.progress.reporter import log, track, update

__all__ = ["log", "track", "update"]
