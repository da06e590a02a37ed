"""Work that knows nothing of cronq."""

from celery import shared_task


@shared_task(name="plain.add")
def add(a: int, b: int) -> int:
    return a + b
