"""Text that a terminal may show: nothing in it that a terminal would obey."""

from __future__ import annotations

from reverie.light import pattern
from reverie.text.format import cut_line

# CSI; strings up to their end (OSC, DCS, SOS, PM, APC); all other sequences; in both spellings
SEQUENCE = pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = pattern(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
_SURROGATE = pattern(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without anything a terminal would obey; lines and tabs stay."""
    text = without_sequences(text.replace("\r\n", "\n"))
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def without_sequences(text: str) -> str:
    """The text without escape sequences; single control signs stay."""
    return SEQUENCE.sub("", text)


def line(text: str, limit: int = 200) -> str:
    """The text on one line, cut where it is too long."""
    return cut_line(clean(text), limit)
