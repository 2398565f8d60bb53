"""Where a text quotes: in any of the usual quotes, or in backticks.

The scan is linear. An apostrophe opens nothing, and a quote that is never closed is none.
"""

from __future__ import annotations

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』"}


def spans(text: str) -> list[tuple[int, int]]:
    """Where quoted text stands, quotes included."""
    found: list[tuple[int, int]] = []
    hopeless: set[str] = set()
    at = 0
    while at < len(text):
        mark = text[at]
        close = QUOTES.get(mark)
        opens = close is not None and mark not in hopeless
        if opens and mark in "'\"" and at and text[at - 1].isalnum():
            opens = text[at - 1] > "\u2e80"  # an apostrophe, but for scripts without spaces
        if not opens or close is None:
            at += 1
            continue
        end = text.find(close, at + 1)
        if end < 0:
            hopeless.add(mark)
            at += 1
        else:
            found.append((at, end + 1))
            at = end + 1
    return found
