"""Words for people: counts, shares, ages, dates; and text of others made safe to look at.

Everything here gives plain text or markup of our own making. Text of others is escaped; what
hides in it stands as its code point; Markdown is rendered from a small set, in which no link
opens anything and no image is loaded.
"""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from reverie.text.format import cut_line, number, plural, short_number, size
from reverie.text.safety import reveal

LAYERS = {
    "1": "1 tool results",
    "2": "2 collapse",
    "3": "3 session notes",
    "4": "4 compaction",
    "5": "5 memory",
    "6": "6 dream",
    "7": "7 agents",
}
SOURCES = {
    "main": ("k-user", "your conversation"),
    "session_memory": ("k-sealed", "session notes"),
    "extract_memories": ("k-memory", "learning"),
    "compact": ("k-assistant", "compaction"),
    "dream": ("k-results", "dreams"),
    "agent_summary": ("k-head", "agent summaries"),
    "agent": ("c-written", "agents"),
    "recall": ("acc", "choosing what to recall"),
}
"""Who asks a model, in words, and its colour."""
REASONS = {
    "dated": "date written out",
    "expired": "its day has passed",
    "merged_into": "merged into another",
    "duplicate_of": "said elsewhere",
    "contradicted_by": "contradicted by a newer one",
    "superseded_by": "replaced by a newer one",
    "never_kept": "belongs into no memory",
    "pointer": "line of the index put right",
}
"""Why a line was changed or went."""
SIGNS = {
    "override": "overrides instructions",
    "secrecy": "keeps things from you",
    "persona": "changes who the agent is",
    "role": "poses as the system",
    "exfiltration": "sends data away",
    "command": "gives an order",
    "memory": "writes memories",
    "trigger": "waits for a cue",
    "secrets": "wants secrets",
    "shell": "runs commands",
    "hidden": "hides characters",
}
"""What made a text wait for review, by its rule."""
MAX_SHOWN = 16_000
MAX_DIFFERENCES = 48_000
"""Characters of all differences on one page together."""
_HIDDEN = re.compile(r"⟦U\+[^⟧]*⟧")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_BLOCKS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "heading": "h3",
}
_INLINE = {
    "strong_open": "<b>",
    "strong_close": "</b>",
    "em_open": "<em>",
    "em_close": "</em>",
    "softbreak": "<br>",
    "hardbreak": "<br>",
}


# --- counts and times


def share(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{round(value, digits + 2) + 0.0:.{digits}%}"


def ago(at: float | None) -> str:
    """How long ago, as people say it."""
    if not at:
        return "–"
    left = max(0.0, time.time() - at)
    if left < 45:
        return "now"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("min", 60)):
        if left >= length or unit == "min":
            count = max(1, round(left / length))
            if unit == "day" and count > 30:
                return day(at)
            return f"{count} min ago" if unit == "min" else f"{plural(count, unit)} ago"
    return "now"


def day(at: float | None) -> str:
    if not at:
        return "–"
    found = datetime.fromtimestamp(at, UTC)
    return f"{found.day} {found:%b %Y}"


def clock(at: float | None) -> str:
    return "–" if not at else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_duration(seconds: float) -> str:
    for unit, length in (("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def homely(path: Path | str) -> str:
    """A path as people write it."""
    text, home = str(path), os.path.expanduser("~")
    return "~" + text[len(home) :] if home != "/" and text.startswith(home + "/") else text


def sentence(text: str) -> str:
    """Text that ends as a sentence does."""
    return text if not text or text[-1] in ".!?…" else f"{text}."


def source(name: str) -> str:
    """Who asked a model."""
    return SOURCES.get(name, ("", name.replace("_", " ")))[1]


def reason(why: str) -> str:
    return REASONS.get(why, why.replace("_", " "))


def sign(rule: str) -> str:
    return SIGNS.get(rule, rule.replace("_", " "))


def whom(origin: str) -> str:
    """Where a change came from; the user is the one who reads it."""
    who, dot, where = origin.partition(" · ")
    return f"you{dot}{where.replace('web', 'on this page')}" if who == "user" else origin


# --- text of others


def safe(text: str) -> Markup:
    """Text as it is, with what hides in it shown by code point."""
    out: list[Markup] = []
    last = 0
    shown = reveal(text)
    for found in _HIDDEN.finditer(shown):
        out += [escape(shown[last : found.start()])]
        out.append(Markup('<span class="hid">{}</span>').format(found[0][1:-1]))
        last = found.end()
    return Markup("").join([*out, escape(shown[last:])])


def lines(text: str) -> Markup:
    """Text line by line, each with its number and a name to go to."""
    item = Markup('<li id="L{}"><span>{}</span></li>')
    shown = text[:MAX_SHOWN].splitlines()
    rows = (item.format(n, safe(line) or " ") for n, line in enumerate(shown, 1))
    return Markup('<ol class="lines quote">{}</ol>').format(Markup("").join(rows))


def cut(text: str, limit: int = 80) -> str:
    """The text on one line, cut where it is too long."""
    return cut_line(text, limit)


def evident(text: str, evidence: Sequence[Mapping[str, Any]]) -> Markup:
    """Text with the words marked that made it wait."""
    words = sorted({str(one["words"]) for one in evidence if one["words"]}, key=len, reverse=True)
    if not words:
        return safe(text)
    out: list[Markup] = []
    for n, part in enumerate(re.split("(" + "|".join(map(re.escape, words)) + ")", text)):
        out.append(Markup("<mark>{}</mark>").format(safe(part)) if n % 2 else safe(part))
    return Markup("").join(out)


def prose(text: str) -> Markup:
    """Markdown from a small set: no HTML, no image, no link that opens anything."""
    parsed = MarkdownIt("commonmark", {"html": False}).parse(text[:MAX_SHOWN])
    return Markup("").join(_block(token) for token in parsed)


def _block(token: Token) -> Markup:
    if token.type == "inline":
        return Markup("").join(_inline(token.children or ()))
    if token.type in ("fence", "code_block"):
        return Markup('<pre class="quote">{}</pre>').format(safe(token.content))
    if token.type == "hr":
        return Markup("<hr>")
    name, _, side = token.type.rpartition("_")
    tag = _BLOCKS.get(name)
    if tag is None or token.hidden:
        return Markup("") if side in ("open", "close") else safe(token.content)
    return Markup(f"<{'/' if side == 'close' else ''}{tag}>")


def _inline(tokens: Sequence[Token]) -> Iterator[Markup]:
    for token in tokens:
        if token.type in _INLINE:
            yield Markup(_INLINE[token.type])
        elif token.type == "code_inline":
            yield Markup("<code>{}</code>").format(safe(token.content))
        elif token.type == "image":
            yield safe(f"[image: {token.content or 'no words'}, not loaded: {_address(token)}]")
        elif token.type == "link_open":
            yield Markup('<span class="link">')
            yield Markup('<span class="mono s dim">{}</span> ').format(safe(_address(token)))
        elif token.type == "link_close":
            yield Markup("</span>")
        else:
            yield safe(token.content)


def _address(token: Token) -> str:
    return str(token.attrs.get("href") or token.attrs.get("src") or "")


# --- differences


def difference(before: str, after: str, *, words: bool = True) -> list[tuple[str, Markup]]:
    """Lines with what happened to them (`r`, `a` or nothing; `h` says where the next ones stand);
    with `words` the changed ones in a line are marked."""
    rows = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))[2:]
    out: list[tuple[str, Markup]] = []
    at = 0
    while at < len(rows):
        if hunk := _HUNK.match(rows[at]):
            if int(hunk[1]) > 1:
                out.append(("h", Markup("line {}").format(hunk[1])))
            at += 1
            continue
        old = _run(rows, at, "-")
        new = _run(rows, at + len(old), "+")
        if old or new:
            out += _changed_rows(old, new, words)
            at += len(old) + len(new)
        else:
            out.append(("", safe(rows[at][1:] or " ")))
            at += 1
    return out


def index_last(files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Memories first, then the index that follows from them."""
    return sorted(files, key=lambda file: file["key"].endswith("MEMORY.md"))


def within(files: Sequence[dict[str, Any]], room: int = MAX_DIFFERENCES) -> list[dict[str, Any]]:
    """Files with as much of their differences as a page has room for; it says what is left out."""
    out: list[dict[str, Any]] = []
    for file in files:
        kept: list[tuple[str, Markup]] = []
        for sign, text in file["rows"]:
            room -= len(text) + 40
            if room < 0:
                left = plural(len(file["rows"]) - len(kept), "line")
                kept.append(("h", Markup("{} more, not shown here").format(left)))
                break
            kept.append((sign, text))
        out.append({**file, "rows": kept})
    return out


def _run(rows: Sequence[str], at: int, sign: str) -> list[str]:
    found: list[str] = []
    while at < len(rows) and rows[at].startswith(sign):
        found.append(rows[at][1:])
        at += 1
    return found


def _changed_rows(
    old: Sequence[str], new: Sequence[str], words: bool
) -> Iterator[tuple[str, Markup]]:
    pairs = min(len(old), len(new)) if words else 0
    marked = [_words(old[n], new[n]) for n in range(pairs)]
    for n, line in enumerate(old):
        yield "r", marked[n][0] if n < pairs else safe(line)
    for n, line in enumerate(new):
        yield "a", marked[n][1] if n < pairs else safe(line)


def _words(old: str, new: str) -> tuple[Markup, Markup]:
    first, second = _WORDS.findall(old), _WORDS.findall(new)
    match = difflib.SequenceMatcher(None, first, second, autojunk=False)
    if len(first) * len(second) > 40_000 or match.ratio() < 0.3:
        return safe(old), safe(new)
    left, right = [Markup("")], [Markup("")]
    for what, a, b, c, d in match.get_opcodes():
        was, now = safe("".join(first[a:b])), safe("".join(second[c:d]))
        if what == "equal":
            left.append(was)
            right.append(now)
            continue
        left.append(Markup("<del>{}</del>").format(was) if was else was)
        right.append(Markup("<ins>{}</ins>").format(now) if now else now)
    return Markup("").join(left), Markup("").join(right)


FILTERS: dict[str, Callable[..., Any]] = {
    "num": number,
    "short": short_number,
    "share": share,
    "ago": ago,
    "day": day,
    "clock": clock,
    "lasted": format_duration,
    "sentence": sentence,
    "source": source,
    "reason": reason,
    "sign": sign,
    "whom": whom,
    "bytes": size,
    "plural": plural,
    "safely": safe,
    "lines": lines,
    "cut": cut,
    "prose": prose,
    "evident": evident,
}
