"""Hidden characters, frames, terminal-safe text.

Text that is not ours: what does not show in it, and a frame around it that it cannot close.

Zero-width signs, the tag block that spells ASCII invisibly, signs that turn the direction of
writing, variation selectors and controls can carry words that nobody sees. `reveal` is what a
person is shown, `strip` what a model is given. Both keep what a script or an emoji needs: a
joiner between two letters of a script that joins, the flag of Scotland, `U+FE0F` behind a sign.
A text without such characters comes back as it is.

What is injected (a memory, a stored result, a teammate's words) stands between two lines that
carry a nonce. The nonce follows from the text and the session, so the same text in the same
session is framed in the same bytes every time; and it never occurs in the text, so nothing in
the text can end the frame. What inside looks like a tag or role marker of ours or of a model's
format is defused besides, since a model may take it for one; hidden characters are taken out.

Nothing here decides what is injected or changes a file, and nothing is dropped but what cannot
be seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from hashlib import sha256

from reverie.light import dataclass, pattern
from reverie.text.format import cut_line

_FORMAT = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufe00-\ufe0f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_HIDDEN = pattern(f"[{_FORMAT}{_CONTROL}]+")
_FLAG = pattern("\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f")
_FLAGS = frozenset({"gbeng", "gbsct", "gbwls"})
_JOINERS = "\u200c\u200d"
# Scripts whose words are spelt with joiners, by the beginning of their letters' names.
_JOINING = pattern(
    "(?:ARABIC|SYRIAC|MONGOLIAN|NKO|DEVANAGARI|BENGALI|GURMUKHI|GUJARATI|ORIYA|TAMIL|TELUGU"
    "|KANNADA|MALAYALAM|SINHALA|KHMER|MYANMAR|TIBETAN)"
)


@dataclass(frozen=True, slots=True)
class HiddenRun:
    """A run of characters that do not show: where, which, and what the tag block spells."""

    line: int
    column: int
    points: tuple[str, ...]
    spells: str = ""


def find(text: str) -> tuple[HiddenRun, ...]:
    """Every run of hidden characters that nothing in the text needs."""
    return tuple(_describe_hidden(text, start, end) for start, end in _spans(text))


def strip(text: str) -> str:
    """The text as a model may see it: nothing in it that a person would not see."""
    return _replace_hidden(text, lambda _: "")


def reveal(text: str) -> str:
    """The text as a person is shown it: `⟦U+200B⟧` where something hides, and what it spells."""
    return _replace_hidden(text, _format_hidden)


def _format_hidden(run: str) -> str:
    spelled = tag_text(run)
    named = " ".join(f"U+{ord(c):04X}" for c in run[:3]) + (" …" if len(run) > 3 else "")
    return f"⟦{named}: “{spelled}”⟧" if spelled else f"⟦{named}⟧"


def tag_text(run: str) -> str:
    """The words that characters of the tag block spell."""
    return "".join(chr(ord(c) - 0xE0000) for c in run if 0xE0020 <= ord(c) <= 0xE007E)


def _replace_hidden(text: str, by: Callable[[str], str]) -> str:
    out: list[str] = []
    last = 0
    for start, end in _spans(text):
        out += [text[last:start], by(text[start:end])]
        last = end
    return "".join([*out, text[last:]]) if out else text


def _describe_hidden(text: str, start: int, end: int) -> HiddenRun:
    above = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    points = tuple(f"U+{ord(c):04X}" for c in text[start:end])
    return HiddenRun(above + 1, column + 1, points, tag_text(text[start:end]))


def _spans(text: str) -> list[tuple[int, int]]:
    if text.isascii() and text.isprintable():
        return []
    spared = {
        n
        for flag in _FLAG.finditer(text)
        if tag_text(flag[0]) in _FLAGS
        for n in range(flag.start() + 1, flag.end())
    }
    spans: list[tuple[int, int]] = []
    for found in _HIDDEN.finditer(text):
        for n in range(found.start(), found.end()):
            if n in spared or _is_needed(text, n):
                continue
            if spans and spans[-1][1] == n:
                spans[-1] = (spans[-1][0], n + 1)
            else:
                spans.append((n, n + 1))
    return spans


def _is_needed(text: str, at: int) -> bool:
    """Whether the sign is part of how something visible is written."""
    sign = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if sign == "\ufeff":
        return at == 0
    if sign in "\ufe0e\ufe0f":
        return bool(before) and (_is_symbol(before) or before in "0123456789#*")
    if sign in _JOINERS:
        if before in ("\ufe0f", "\ufe0e"):
            before = text[at - 2 : at - 1]
        joined = _joins(before) and (_joins(after) or (sign == "\u200c" and not after.isalnum()))
        return joined or (sign == "\u200d" and _is_symbol(before) and _is_symbol(after))
    return False


def _joins(character: str) -> bool:
    return bool(character) and bool(_JOINING.match(unicodedata.name(character, "")))


def _is_symbol(character: str) -> bool:
    return bool(character) and unicodedata.category(character) in ("So", "Sk", "Sm", "Po")


NAME = "reverie-note"
_HEX = 16

# Names that stand for a frame, a role or a tool in our prompts or in some model's own format.
_RESERVED = (
    "system-reminder|system|user|assistant|human|developer|tool|persisted-output|instructions?|"
    "analysis|summary|thinking|function_calls?|function_results?|invoke|parameter|tool_use|"
    "tool_result|tool_calls?|command-[a-z]+|local-command-[a-z]+|memory(?:-[a-z]+)?|reverie-[a-z]+|"
    "antml:[a-z_]+|untrusted[a-z_-]*|context|document_content|source"
)
_TAG = pattern(rf"[<＜‹](?=\s*[/／]?\s*(?:{_RESERVED})(?![A-Za-z0-9]))", re.IGNORECASE)
_TOKEN = pattern(r"[<＜](?=[|｜])|\[(?=/?INST\])|<(?=</?SYS>>)", re.IGNORECASE)
_ROLE = pattern(
    r"^([ \t>]*)(human|assistant|system|user)([ \t]*)([:：])", re.IGNORECASE | re.MULTILINE
)
_WHOLE = pattern(
    rf'<{NAME} id="([0-9a-f]{{{_HEX}}})"([^\n]*)>\n(.*?)\n</{NAME} id="\1">', re.DOTALL
)
_SOURCE = pattern(r'source="([^"]*)"')


def frame(text: str, *, session: str, source: str = "", trust: str = "") -> str:
    """The text in its frame, ready to be sent; always the same bytes for the same words."""
    shown = neutralize_markup(text)
    nonce = _nonce(f"{session}\0{source}\0{trust}\0{shown}", shown)
    about = "".join(
        f' {k}="{_quote_text(v)}"' for k, v in (("source", source), ("trust", trust)) if v
    )
    return f'<{NAME} id="{nonce}"{about}>\n{shown}\n</{NAME} id="{nonce}">'


def inside(text: str) -> Iterator[tuple[str, str]]:
    """The source and the words of every frame that stands in a longer text."""
    for found in _WHOLE.finditer(text):
        source = _SOURCE.search(found[2])
        yield (source[1] if source else ""), found[3]


def neutralize_markup(text: str) -> str:
    """The text with nothing in it that reads as a frame, a role or a hidden word."""
    seen = strip(text)
    seen = _TAG.sub("&lt;", seen)
    seen = _TOKEN.sub(lambda m: "&lt;" if m[0] in "<＜" else "&#91;", seen)
    return _ROLE.sub(r"\1\2\3\\\4", seen)


def _nonce(seed: str, text: str) -> str:
    number = 0
    while True:
        made = sha256(f"{number}\0{seed}".encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]
        if made not in text:
            return made
        number += 1


def _quote_text(value: str) -> str:
    one = " ".join(unicodedata.normalize("NFC", strip(value)).split())
    return (
        one.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )


# --- Text that a terminal may show: nothing in it that a terminal would obey.


# CSI; strings up to their end (OSC, DCS, SOS, PM, APC); all other sequences; in both spellings
SEQUENCE = pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_TERMINAL_CONTROL = pattern(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
_SURROGATE = pattern(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without anything a terminal would obey; lines and tabs stay."""
    text = without_sequences(text.replace("\r\n", "\n"))
    return _SURROGATE.sub("\ufffd", _TERMINAL_CONTROL.sub("", text))


def without_sequences(text: str) -> str:
    """The text without escape sequences; single control signs stay."""
    return SEQUENCE.sub("", text)


def line(text: str, limit: int = 200) -> str:
    """The text on one line, cut where it is too long."""
    return cut_line(clean(text), limit)


# --- Text that can be written down: half a character, as a cut-off answer leaves, becomes U+FFFD.


def whole(text: str) -> str:
    """The text as UTF-8 can hold it; the very same where it can already."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
