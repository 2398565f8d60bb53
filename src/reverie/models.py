"""Models to hand in: `Memory.learn(model=)`, `Fitter(summarizer=)`, `Session.open(model=)`.

A model is made and nothing is asked: its client connects when it is first used. Keys and addresses
come from the environment, as for the command line. What is missing is said when it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.settings import Settings
    from reverie.world import Model

__all__ = ["anthropic", "embedded", "named", "openai"]


def named(name: str, *, settings: Settings | None = None) -> Model:
    """The model of a name, such as `claude-opus-5-5`, `openai:gpt-5` or `embedded`."""
    from reverie.providers.choose import model_for
    from reverie.settings import DEFAULTS, environment

    found = model_for(name, environment(), settings or DEFAULTS)
    return embedded(settings=settings) if found is None else found


def anthropic(name: str, *, settings: Settings | None = None) -> Model:
    """A model of Anthropic's."""
    return named(f"anthropic:{name}", settings=settings)


def openai(name: str, *, settings: Settings | None = None) -> Model:
    """A model of OpenAI's, or of a server that speaks like it."""
    return named(f"openai:{name}", settings=settings)


def embedded(*, settings: Settings | None = None) -> Model:
    """The rules that need no model: free, and on this machine alone."""
    from reverie.embedded import EmbeddedModel

    return EmbeddedModel() if settings is None else EmbeddedModel(settings)
