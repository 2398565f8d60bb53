"""The frame around text that is not ours, which that text cannot close.

What is injected (a memory, a stored result, a teammate's words) stands between two lines that
carry a nonce. The nonce follows from the text and the session, so the same text in the same
session is framed in the same bytes every time; and it never occurs in the text, so nothing in
the text can end the frame. What inside looks like a tag or role marker of ours or of a model's
format is defused besides, since a model may take it for one; hidden characters are taken out.

Nothing here decides what is injected, and nothing is dropped but what cannot be seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from reverie.text.hidden import strip

NAME = "reverie-note"
_HEX = 16

# Names that stand for a frame, a role or a tool in our prompts or in some model's own format.
_RESERVED = (
    "system-reminder|system|user|assistant|human|developer|tool|persisted-output|instructions?|"
    "analysis|summary|thinking|function_calls?|function_results?|invoke|parameter|tool_use|"
    "tool_result|tool_calls?|command-[a-z]+|local-command-[a-z]+|memory(?:-[a-z]+)?|reverie-[a-z]+|"
    "antml:[a-z_]+|untrusted[a-z_-]*|context|document_content|source"
)
_TAG = re.compile(rf"[<＜‹](?=\s*[/／]?\s*(?:{_RESERVED})(?![A-Za-z0-9]))", re.IGNORECASE)
_TOKEN = re.compile(r"[<＜](?=[|｜])|\[(?=/?INST\])|<(?=</?SYS>>)", re.IGNORECASE)
_ROLE = re.compile(
    r"^([ \t>]*)(human|assistant|system|user)([ \t]*)([:：])", re.IGNORECASE | re.MULTILINE
)
_WHOLE = re.compile(
    rf'<{NAME} id="([0-9a-f]{{{_HEX}}})"([^\n]*)>\n(.*?)\n</{NAME} id="\1">', re.DOTALL
)
_SOURCE = re.compile(r'source="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Framed:
    """A frame taken apart again."""

    nonce: str
    attributes: str
    text: str


def frame(text: str, *, session: str, source: str = "", trust: str = "") -> str:
    """The text in its frame, ready to be sent; always the same bytes for the same words."""
    shown = defused(text)
    nonce = _nonce(f"{session}\0{source}\0{trust}\0{shown}", shown)
    about = "".join(f' {k}="{_quoted(v)}"' for k, v in (("source", source), ("trust", trust)) if v)
    return f'<{NAME} id="{nonce}"{about}>\n{shown}\n</{NAME} id="{nonce}">'


def unframe(framed: str) -> Framed | None:
    """What a frame holds; None where the text is not one whole frame."""
    found = _WHOLE.fullmatch(framed)
    return Framed(found[1], found[2].strip(), found[3]) if found else None


def inside(text: str) -> Iterator[tuple[str, str]]:
    """The source and the words of every frame that stands in a longer text."""
    for found in _WHOLE.finditer(text):
        source = _SOURCE.search(found[2])
        yield (source[1] if source else ""), found[3]


def defused(text: str) -> str:
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


def _quoted(value: str) -> str:
    one = " ".join(unicodedata.normalize("NFC", strip(value)).split())
    return (
        one.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )
