"""A model that works behind a client's conversation is asked by its own name.

What it is sent is made from the client's conversation, which names the client's model. That one may
be dearer, or another provider's: whoever chose a model for the background is billed for that one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from reverie.light import dataclass
from reverie.wire.request import Request
from reverie.world import Event, Model, WrappedModel


@dataclass(frozen=True, slots=True)
class ModelBehind(WrappedModel):
    """A model as it is, whatever model a request was made for."""

    model: Model

    def stream(self, request: Request) -> AsyncIterator[Event]:
        head = replace(request.head, model=self.model.name)
        return self.model.stream(replace(request, head=head))
