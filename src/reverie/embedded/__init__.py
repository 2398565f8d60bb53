"""The embedded model: answers by fixed rules, with no language model and no network.

It is the default where no key is configured. It reads a request's typed task and its
messages, never the prompts; the same request always gets the same answer. Each kind of
task has a module of its own and one row in `model.ANSWERS`.
"""

from __future__ import annotations

from reverie.embedded.model import ANSWERS, NAME, Answer, EmbeddedModel
from reverie.lazy import offered

__all__ = ["ANSWERS", "NAME", "Answer", "EmbeddedModel"]

__getattr__ = offered(
    __name__,
    {
        "chat.phrases": "CHINESE ENGLISH",
        "chat.requests": "TESTS asked",
        "extraction.answer": "NOTHING edit_between shown_text",
        "extraction.dates": "is_ahead said_on",
        "extraction.findings": "findings",
        "extraction.never": "never",
        "extraction.words": "FoundFact UserTurn own sentences",
        "history": "LOOKED_AT",
        "notes.lines": "fitted purpose",
        "selecting": "selected",
        "summary.salience": "user_words work",
        "summary.sheet": "HEADINGS Sheet UserWords allowed shortened user_lines",
    },
)
