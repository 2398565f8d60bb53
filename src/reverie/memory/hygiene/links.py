"""What a memory points to: other memories by links, and the repository by paths and symbols.

A link that leads out of the memory folder is not ours to judge. One that leads inside it and to
nothing is broken; where exactly one memory has the file name, and is called what the link says,
the link was meant for that one.
Whether a path or a symbol is still in the repository is asked of whoever knows; without anyone
to ask nothing is said of it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reverie.memory.claims import Claim, claims
from reverie.memory.hygiene.reading import Memory
from reverie.text.terms import terms

Present = Callable[[Claim], bool]
"""Whether the repository has what a memory names; in doubt, yes."""

_LINK = re.compile(
    r"\[(?P<text>[^\[\]\n]*)\]\((?P<target><[^<>\n]+>|[^()\s]+)(?:[ \t]+\"[^\"\n]*\")?\)"
)
_CODE = re.compile(r"(?ms)^[ \t>]*(`{3,}|~{3,}).*?(?:^[ \t>]*\1|\Z)|`[^`\n]*`")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Reference:
    """Something a memory names: the words, their line and place, and where it was meant to lead."""

    words: str
    line: int
    start: int
    end: int
    meant: str = ""


def broken(
    memory: Memory, keys: Collection[str], names: Mapping[str, Sequence[Memory]]
) -> Iterator[Reference]:
    """Links to memories that are not there; `names` gives the memories of each file name."""
    below = posixpath.dirname(memory.key)
    seen = _CODE.sub(lambda found: " " * len(found[0]), memory.text)
    for found in _LINK.finditer(seen):
        raw = found["target"].strip("<>")
        target, _, anchor = raw.partition("#")
        if not target.lower().endswith(".md") or _SCHEME.match(target) or target[0] in "/~":
            continue
        key = posixpath.normpath(posixpath.join(below, target))
        outside = key.startswith("..") or any(part[:1] == "." for part in key.split("/"))
        if outside or key in keys or posixpath.normpath(target) in keys:
            continue
        meant = names.get(posixpath.basename(key).casefold(), ())
        said = memory.text[found.start("text") : found.end("text")]
        fits = len(meant) == 1 and called(said, meant[0].subject)
        to = posixpath.relpath(meant[0].key, below or ".") if fits else ""
        to = f"{to}#{anchor}" if to and anchor else to
        line = memory.text.count("\n", 0, found.start()) + 1
        yield Reference(raw, line, *found.span("target"), to)


def called(text: str, subject: frozenset[str]) -> bool:
    """Whether words name a memory that is called so: they share half of the fewer words."""
    words = terms(text, titled=True).all
    return 2 * len(words & subject) >= min(len(words), len(subject)) > 0


def relinked(key: str, text: str, moved: Mapping[str, str]) -> str:
    """A text whose links to files that were merged lead to where they went."""
    below = posixpath.dirname(key)
    seen = _CODE.sub(lambda found: " " * len(found[0]), text)
    for found in reversed(list(_LINK.finditer(seen))):
        target, mark, anchor = found["target"].strip("<>").partition("#")
        went = moved.get(posixpath.normpath(posixpath.join(below, target)))
        if went:
            to = posixpath.relpath(went, below or ".") + mark + anchor
            start, end = found.span("target")
            text = text[:start] + to + text[end:]
    return text


def gone(memory: Memory, present: Present) -> Iterator[Claim]:
    """What a memory names of the repository and the repository does not have."""
    return (one for one in claims(memory.text) if one.sure and not present(one))
