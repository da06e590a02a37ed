"""Distributed cron for Celery."""
