"""Plain words: what prose needs of prose. For benches that judge a summary by what the real
continuation went on to say; nothing of the product is imported.

A plain word is a word of five letters or more without digits, signs or inner capitals, and none
of the commonest. A continuation needs one where it says it and the conversation that went had
said it too, in the user's or the assistant's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LEAST = 5
_WORD = re.compile(r"(?<![\w./@#$-])[A-Za-z][a-z]{4,}(?![\w/@#$]|[-.]\w)")
_OFTEN = """
about above across actually after again against along already although always another anything
around because before begin being below better between check clear could create current directly
doing during either everything every exactly example found first following further getting given
going happen having here's however issue let's likely looking looks makes making might moved
needs never nothing other otherwise perfect place please possible probably properly ready really
right running same second seems should simple since something start started still successfully
their there these thing things think third those through together under until update updated
using want wants were what whether which while whole will within without working works would
write wrong yours great excellent
"""
_COMMON = frozenset(_OFTEN.split())


def plain_words(texts: Iterable[str]) -> set[str]:
    """The plain words of some texts, in small letters."""
    found = {word.lower() for text in texts for word in _WORD.findall(text)}
    return {word for word in found if len(word) >= LEAST} - _COMMON


def share(words: set[str], texts: Iterable[str]) -> float:
    """The share of words that stand in any of the texts."""
    if not words:
        return 1.0
    there = {word.lower() for text in texts for word in re.findall(r"[A-Za-z]+", text)}
    return len(words & there) / len(words)
