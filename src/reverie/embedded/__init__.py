"""The embedded model: answers by fixed rules, with no language model and no network.

It is the default where no key is configured. It reads a request's typed task and its
messages, never the prompts; the same request always gets the same answer. Each kind of
task has a module of its own and one row in `model.ANSWERS`.
"""

from __future__ import annotations

from reverie.embedded.model import ANSWERS, NAME, Answer, EmbeddedModel

__all__ = ["ANSWERS", "NAME", "Answer", "EmbeddedModel"]
