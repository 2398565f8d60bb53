"""Where notices go that nobody asked for: to the logger `reverie`, one child a layer.

No handler is set: where an application configures nothing, Python itself shows warnings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from reverie.world import Notice, Say

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def log(notice: Notice) -> None:
    """Hand a notice to `logging`."""
    logger = logging.getLogger(f"reverie.{notice.layer}")
    logger.log(_LEVELS.get(notice.level, logging.INFO), "%s", notice.text)


_MOST = 1_000
_told: set[str] = set()  # warnings that this process was told


def listening(on_notice: Callable[[Notice], object] | None) -> Say:
    """Where notices go: to the caller, else to `logging`, a warning once in a process."""
    if on_notice is None:
        return _log_once

    def tell(notice: Notice) -> None:
        on_notice(notice)

    return tell


def _log_once(notice: Notice) -> None:
    if notice.level == "warning":
        if notice.text in _told:
            return
        if len(_told) >= _MOST:
            _told.clear()
        _told.add(notice.text)
    log(notice)
