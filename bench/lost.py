"""Which facts of a memory folder are no longer in another state of it: a judge of its own.

It shares no code with what repairs a folder, nor with what decides whether a repair may land. Each
sentence, list item, table row and value of the old folder has atoms: numbers with their signs,
names, identifiers, paths, dates, quoted strings, negations, numbers in words and weekdays. All of
a sentence's atoms must stand together in one paragraph of the new folder, and so must all its
words of three letters or more: a plain noun that is another one is another fact.

What does not stand there may have a tombstone: the words that went, a reason, and the line that
replaces them, which must stand in the new folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_HEAD = re.compile(r"\A---\r?\n(.*?)\r?\n---[ \t]*\r?\n", re.DOTALL)
_OPEN_HEAD = re.compile(r"\A---\r?\n((?:[a-z]+:.*\r?\n)+)")
_FENCE = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}|~{3,})")
_POINTER = re.compile(r"\s*[-*] \[([^\]]*)\]\([^)]*\)(?: — (.*))?\Z")
_VALUE = re.compile(r"^(name|description):[ \t]*(.+)$", re.MULTILINE)
_ITEM = re.compile(r"\A\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]*_`”’]*\s+(?=[\"'(\[*_`“‘]*[A-ZÄÖÜ\d`])|(?<=[。！？])")
_LINK = re.compile(r"\]\((?!\w+:)[^()\s]*\.md[^()\s]*\)")
_SINCE = re.compile(
    r"\b(?:(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tomorrow|tonight"
    r"|(?:last|next|this|coming|previous) (?:week|month|quarter|year|\w+day)"
    r"|(?:a|an|one|two|three|four|five|six|\d+) (?:days?|weeks?|months?|years?) (?:ago|from now)"
    r"|in (?:a|an|one|two|three|four|five|six|\d+) (?:days?|weeks?|months?)"
    r"|gestern|vorgestern|morgen|übermorgen|(?:letzte|nächste)[nrs]? (?:Woche|Monat|Jahr|\w+tag)"
    r"|vor (?:\w+) (?:Tagen|Wochen|Monaten))\b|昨天|前天|明天|后天|上周.?|下周.?|[一二三两\d]+天前",
    re.IGNORECASE,
)
_NO = frozenset(
    re.findall(
        r"\S+",
        """
        not no never none neither nor without cannot nothing nobody nicht kein keine keinen
        nie niemals ohne
        """,
    )
)
_COUNTED = frozenset(
    re.findall(
        r"\S+",
        """
        one two three four five six seven eight nine ten eleven twelve twenty thirty forty
        fifty hundred eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig
        """,
    )
)
_DAYS = frozenset(
    re.findall(
        r"\S+",
        """
        monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch
        donnerstag freitag samstag sonntag montags dienstags mittwochs donnerstags freitags
        """,
    )
)
_TOKEN = re.compile(
    r"https?://[^\s)>\]]+|[-+]?[$€£]?\d[\d.,:/-]*(?<=\d)%?|[\w./@#-]*\w"
    r"|[一-鿿]",
)


@dataclass
class Said:
    """A sentence: its text, its atoms, and its words."""

    file: str
    text: str
    atoms: frozenset[str]
    words: frozenset[str]
    since: bool


@dataclass
class Losses:
    """What is gone: by atoms, by words; and how many tombstones stood for others."""

    atoms: list[Said] = field(default_factory=list[Said])
    words: list[Said] = field(default_factory=list[Said])
    tombstones: int = 0
    sentences: int = 0


def losses(old: Mapping[str, bytes], new: Mapping[str, bytes], account: str = "") -> Losses:
    """What of the old folder is neither in the new one nor in a tombstone of the account."""
    paragraphs = [_seen(one) for data in new.values() for one in _paragraphs(_text(data))]
    holders: dict[str, list[int]] = {}
    for number, (_, words) in enumerate(paragraphs):
        for word in words:
            holders.setdefault(word, []).append(number)
    graves = list(_tombstones(account, paragraphs))
    verbatim = {said.text for said in _sentences(new)}
    out = Losses()
    for said in _sentences(old):
        out.sentences += 1
        if said.text in verbatim:
            continue
        rare = min((holders.get(one, []) for one in said.words), key=len, default=[])
        near = [paragraphs[n] for n in rare] if said.words else paragraphs[:1]
        atoms = any(said.atoms <= own for own, _ in near)
        whole = any(said.atoms <= own and said.words <= words for own, words in near)
        if whole:
            continue
        if not atoms and any(said.atoms <= own for own, _ in paragraphs):
            atoms = True
        if any(said.words <= one for one in graves):
            out.tombstones += 1
            continue
        if not atoms:
            out.atoms.append(said)
        out.words.append(said)
    return out


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("(passed)", "")


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, items, rows and lines of code, each on its own; values of the head too."""
    head = _HEAD.match(text) or _OPEN_HEAD.match(text)
    if head:
        for _, value in _VALUE.findall(head[1]):
            yield _unquoted(value)
        text = text[head.end() :]
    gathered: list[str] = []
    fence = ""
    for row in [*text.split("\n"), ""]:
        mark = _FENCE.match(row)
        alone = bool(fence or mark) or row.lstrip().startswith(("#", "|"))
        if not row.strip() or alone or _ITEM.match(row):
            if gathered:
                yield " ".join(gathered)
            gathered = []
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not row.strip(" `~"):
            fence = ""
        pointer = _POINTER.match(row)
        if pointer:
            yield from (one for one in pointer.groups() if one)
        elif alone:
            yield row
        elif row.strip():
            gathered.append(_ITEM.sub("", row, count=1).strip())


def _unquoted(value: str) -> str:
    value = value.strip()
    if value[:1] == '"' and value[-1:] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value.strip('"')
    return value.strip("'")


def _sentences(folder: Mapping[str, bytes]) -> Iterator[Said]:
    for file, data in folder.items():
        if file.startswith("logs/"):
            continue
        for paragraph in _paragraphs(_text(data)):
            for text in _SENTENCE.split(paragraph):
                since = _SINCE.search(text) is not None
                cut = text.rstrip().endswith(("…", "..."))
                seen = text.rstrip(" .…").rpartition(" ")[0] if cut else text
                atoms, words = _seen(_SINCE.sub(" ", seen) if since else seen)
                if words:
                    yield Said(file, text.strip(), atoms, words, since)


def _seen(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The atoms and the words of a text."""
    seen = _LINK.sub("] ", text.replace("’", "'"))
    atoms: set[str] = set()
    words: set[str] = set()
    for number, found in enumerate(_TOKEN.finditer(re.sub(r"[*`]|(?<!\w)_|_(?!\w)", " ", seen))):
        token = found[0].strip("-./:,")
        low = token.lower()
        if not low:
            continue
        if len(low) > 2 or low[0].isdigit() or low >= "一":
            words.add(low)
        hard = low[0].isdigit() or re.search(r"[_/@#.]|[a-z][A-Z]|\d", token) is not None
        name = (
            number > 0
            and token[0].isupper()
            and not re.search(r"[.!?:]\s*$", seen[: found.start()])
        )
        if found[0][:1] == "-" and low[0].isdigit():
            atoms.add(f"-{low}")
        if hard or name or low in _NO or low in _COUNTED or low in _DAYS:
            atoms.add(low)
    if re.search(r"n't\b", seen):
        atoms.add("not")
    atoms |= {
        " ".join(one.lower().split()) for one in re.findall(r"[\"“]([^\"“”\n]{2,60})[\"”]", seen)
    }
    return frozenset(atoms | {"<any>"}), frozenset(words)


def _tombstones(
    account: str, paragraphs: list[tuple[frozenset[str], frozenset[str]]]
) -> Iterator[frozenset[str]]:
    """The words of facts that went for a reason, where the line that replaces them stands."""
    for block in re.findall(r"(?ms)^```reasons[ \t]*\n(.*?)^```", account):
        for row in block.splitlines():
            try:
                value = json.loads(row)
            except ValueError:
                continue
            why, fact, by = (str(value.get(name, "")) for name in ("reason", "fact", "by"))
            if why in ("expired", "pointer"):
                yield _seen(fact)[1]
            elif why in ("contradicted_by", "superseded_by") and by:
                words = _seen(by)[1]
                if any(words <= own for _, own in paragraphs):
                    yield _seen(fact)[1]
