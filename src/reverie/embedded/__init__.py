"""The embedded model: answers by fixed rules, with no language model and no network.

It is the default where no key is configured. It reads a request's typed task and its
messages, never the prompts; the same request always gets the same answer. Each kind of
task has a module of its own and one row in `model.ANSWERS`.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "dates": "said_on",
        "dream": "answer_dream",
        "exclusions": "never",
        "extraction": "NOTHING_TO_SAVE answer_extraction",
        "findings": "find_cue find_facts vetoes",
        "history": "LOOKED_AT",
        "model": "ANSWERS EmbeddedModel answer_selection select_files",
        "notes": "DONE FAILED NOTHING answer_notes lines_within purpose",
        "requests": "CHINESE ENGLISH MAX parse_requests",
        "salience": "user_words work",
        "sentences": "ExtractedFact Sentence UserTurn own split_sentences user_turn",
        "summary": "HEADINGS NONE SummaryBuilder UserQuote answer_summary largest_share "
        "shorten_words user_lines",
    },
)
