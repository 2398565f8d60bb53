"""The one place where any failure is caught: a layer or a job fails alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from reverie.errors import ReverieError

T = TypeVar("T")


async def alone(work: Awaitable[T], otherwise: T) -> tuple[T, str]:
    """What the work gives, or `otherwise` and what went wrong in a sentence.
    Cancellation is no failure and passes."""
    try:
        return await work, ""
    except Exception as error:  # noqa: BLE001 - the one place that may
        return otherwise, _told(error)


def tried(work: Callable[[], T], otherwise: T) -> tuple[T, str]:
    """The same for work that nobody awaits: one of many, and the others go on."""
    try:
        return work(), ""
    except Exception as error:  # noqa: BLE001 - the one place that may
        return otherwise, _told(error)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ReverieError) else f"{type(error).__name__}: {error}"
