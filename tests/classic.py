"""The default settings, but for the policy: what `classic` does is tested with these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reverie import settings, testing
from reverie.world import World

DEFAULTS = replace(settings.DEFAULTS, context_policy="classic")


def world(**parts: Any) -> World:
    """A world of twins under that policy; hand in what should be otherwise."""
    return testing.world(**{"settings": DEFAULTS, **parts})
