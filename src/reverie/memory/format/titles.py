"""A name and a type for words that become a memory: taken from the words, none added.

And of a name or description that ends in an ellipsis, what is left.
"""

from __future__ import annotations

import re

_NAME_WORDS = 8
_NAME = 60
_PERSON = re.compile(
    r"\b(?:I am|I'm|my (?:role|name|job|team)|I (?:work|like|know|use|prefer)|the user)\b"
    r"|我(?:是|叫|的)|用户",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:always|never|don'?t|do not|prefer|avoid|instead of|stop)\b|(?:总是|不要|别|务必|偏好)",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[`*#>\[\]]+|(?<!\w)_+|_+(?!\w)")
_LINK = re.compile(r"https?://\S+")
_CUT = ("…", "...")


def title_of(text: str) -> str:
    """The first words of a text, without marks; a word is cut only where it is the first."""
    first = next((line for line in _MARKS.sub("", text).splitlines() if line.strip(" \t-")), "")
    words = first.lstrip(" \t-").split()[:_NAME_WORDS]
    while len(words) > 1 and len(" ".join(words)) > _NAME:
        words.pop()
    return " ".join(words)[:_NAME].strip(" .,:;-—。，：；") or "memory"


def sort_of(text: str) -> str:
    """The type that fits best; project where nothing tells."""
    if _RULE.search(text):
        return "feedback"
    if _PERSON.search(text):
        return "user"
    return "reference" if _LINK.search(text) else "project"


def is_cut(text: str) -> bool:
    """Whether a name or description ends where there was no more room."""
    return text.rstrip().endswith(_CUT)


def uncut(text: str) -> str:
    """The words that are left of it."""
    return text.rstrip(" \t\n….") if is_cut(text) else text
