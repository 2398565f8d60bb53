"""Where notices go that nobody asked for: to the logger `reverie`, one child a layer.

No handler is set: where an application configures nothing, Python itself shows warnings.
"""

from __future__ import annotations

import logging

from reverie.world import Notice

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def log(notice: Notice) -> None:
    """Hand a notice to `logging`."""
    logger = logging.getLogger(f"reverie.{notice.layer}")
    logger.log(_LEVELS.get(notice.level, logging.INFO), "%s", notice.text)
