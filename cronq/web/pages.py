"""Placeholder."""

from fastapi import FastAPI


def install_pages(app: FastAPI) -> None:
    """Add the pages to `app`."""
    del app
