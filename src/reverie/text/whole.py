"""Text that can be written down: half a character, as a cut-off answer leaves, becomes U+FFFD."""

from __future__ import annotations


def whole(text: str) -> str:
    """The text as UTF-8 can hold it; the very same where it can already."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
