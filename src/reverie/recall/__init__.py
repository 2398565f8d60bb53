"""Recall without a model: what a question asks for, and which texts answer it best.

`Query` is a question as the index takes it, `ranking` the score that all signals are fused into,
`passages` the turns of a dialogue or transcript. Pure: no file, clock or database.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "gate": "CLEAR LocalModel MARGIN MAX_SENTENCES QueryVector evidence joining "
        "sentences telling",
        "passages": "PASSAGE Utterance around best_lines headings utterances",
        "ranker": "MAX_TERMS Query QueryTerms RankedNote RankedTurn count_terms find_terms rarity "
        "score_note score_turn",
    },
)
