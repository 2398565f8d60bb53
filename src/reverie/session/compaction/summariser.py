"""The model that writes summaries, where the setting `summary_model` names another.

It is made when a summary is first asked for, once, from the same keys and addresses as any
model, and closed with whoever had it made. A model that cannot be made is an error that names
what is missing; the caller goes on with the session's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import anyio
from anyio import to_thread

from reverie.settings import Settings
from reverie.world import Clock, Model

LOOK_UP_SECONDS = 5.0


class NamedSummariser:
    """A `world.Summariser`: the model of a setting, once it is needed."""

    def __init__(self, make: Callable[[], Model]) -> None:
        self._make = make
        self._made: Model | None = None
        self._lock = anyio.Lock()

    async def __call__(self) -> Model:
        async with self._lock:
            if self._made is None:
                self._made = await to_thread.run_sync(self._make)
                await looked_up(self._made)
            return self._made

    async def aclose(self) -> None:
        """Give back its connections, where it was ever asked."""
        close: Callable[[], Awaitable[None]] | None = getattr(self._made, "aclose", None)
        if close is not None:
            await close()


def summariser_for(
    settings: Settings, environ: Mapping[str, str], window: int, clock: Clock | None = None
) -> NamedSummariser | None:
    """The model that a setting names for summaries of a conversation with such a window; None =
    the conversation's own."""
    name = settings.summary_model
    if not name:
        return None

    def make() -> Model:
        from reverie.embedded import EmbeddedModel
        from reverie.providers.choose import model_for

        found = model_for(name, environ, settings, clock=clock)
        return found or EmbeddedModel(replace(settings, context_window=window))  # it reads all

    return NamedSummariser(make)


async def looked_up(model: Model) -> None:
    """Let a provider tell the model's window, where it can and answers soon."""
    look_up: Callable[[], Awaitable[object]] | None = getattr(model, "look_up", None)
    if look_up is not None:
        with anyio.move_on_after(LOOK_UP_SECONDS):
            await look_up()
