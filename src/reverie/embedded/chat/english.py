"""Requests in English: the first word of a clause says what it wants.

Each form takes the words behind its verb and gives calls, or nothing where they do not
fit. Nothing is guessed: "show me the way" is not a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reverie.embedded.forms import (
    TESTS,
    CallAsked,
    between,
    glob_ask,
    grep_ask,
    is_glob,
    is_path,
    literal,
    one_line,
    read_ask,
)
from reverie.text.clauses import Word, words

SMALL = frozenset(
    (
        *(
            "me",
            "the",
            "a",
            "an",
            "file",
            "files",
            "folder",
            "directory",
            "dir",
            "contents",
            "content",
        ),
        *(
            "of",
            "whole",
            "entire",
            "all",
            "in",
            "from",
            "for",
            "here",
            "current",
            "this",
            "my",
            "our",
        ),
        *(
            "up",
            "and",
            "both",
            "again",
            "everything",
            "at",
            "please",
            "named",
            "called",
            "matching",
        ),
        *("it", "that", "them", "to", "first", "word", "string", "text", "project", "repository"),
    )
)
NO_COMMAND = frozenset({"through", "away", "out", "into", "us", "by", "over", "is", "with"})
PLACE = frozenset({"in", "under", "inside", "within"})
TEST_WORDS = (
    *("test", "tests", "the tests", "all tests", "all the tests", "our tests", "my tests"),
    *("test suite", "the test suite", "unit tests", "the unit tests"),
)


def _plain(found: Sequence[Word]) -> list[Word]:
    return [w for w in found if w.quoted or w.low not in SMALL]


def _read(verb: str, rest: list[Word]) -> list[CallAsked]:
    first, count, rest = _lines(rest)
    paths = [w.bare for w in rest if is_path(w)]
    plain = _plain(rest)
    if not paths and verb in ("read", "cat") and len(plain) == 1:
        paths = [plain[0].bare]
    if not paths and len(plain) == 1 and plain[0].text[:1].isupper() and plain[0].low != "i":
        paths = [plain[0].bare]
    return [read_ask(path, first, count) for path in paths if path]


def _lines(rest: list[Word]) -> tuple[int | None, int | None, list[Word]]:
    """A range of lines: "lines 10-20", "lines 10 to 20", "from line 10", "first 20 lines"."""
    low = [w.low for w in rest]
    for at, word in enumerate(low):
        if word in ("line", "lines") and at + 1 < len(low):
            start, dash, end = low[at + 1].replace("–", "-").partition("-")
            used = at + 2
            if not dash and low[used : used + 1] in (["to"], ["through"]) and low[used + 1 :]:
                end, used = low[used + 1], used + 2
            if not start.isdecimal() or len(start) > 9:
                continue
            last = int(end) if end.isdecimal() and len(end) <= 9 else None
            count = 1 if word == "line" and last is None and low[at - 1] != "from" else None
            if last is not None:
                count = max(1, last - int(start) + 1)
            return int(start), count, rest[:at] + rest[used:]
        if word == "first" and low[at + 2 : at + 3] == ["lines"] and low[at + 1].isdecimal():
            return None, int(low[at + 1][:9]), rest[:at] + rest[at + 3 :]
    return None, None, rest


def _grep(verb: str, rest: list[Word]) -> list[CallAsked]:
    given = len(rest)
    rest = [w for w in rest if w.quoted or not w.text.startswith("-")]
    shell = verb != "search" and len(rest) < given  # with options it is a command line
    if verb == "search" and rest and rest[0].low not in ("for", *PLACE):
        path, rest = _behind_for(rest)
    else:
        rest = rest[1:] if rest and rest[0].low == "for" else rest
        at = next((n for n, w in enumerate(rest) if n and w.low in PLACE), len(rest))
        path, rest = _place(rest[at + 1 :]), rest[:at]
        if not path and len(rest) == 2 and verb != "search" and (shell or is_path(rest[1])):
            path, rest = rest[1].bare, rest[:1]
    quoted = [w for w in rest if w.quoted]
    picked = quoted[:1] or [w for w in rest if w.low not in ("the", "word", "string", "text")]
    pattern = one_line(between(picked, 0, len(picked)) if quoted else _joined(picked))
    if not pattern:
        return []
    return [grep_ask(pattern if verb != "search" else literal(pattern), path)]


def _behind_for(rest: list[Word]) -> tuple[str, list[Word]]:
    """ "search PATH for WORD"."""
    at = next((n for n, w in enumerate(rest) if w.low == "for"), None)
    if at is not None:
        known = any(is_path(w) for w in rest[:at])
        return (_place(rest[:at]), rest[at + 1 :]) if known else ("", [])
    at = next((n for n, w in enumerate(rest) if n and w.low in PLACE), len(rest))
    return _place(rest[at + 1 :]), rest[:at]


def _joined(found: Sequence[Word]) -> str:
    return " ".join(w.bare for w in found)


def _place(found: Sequence[Word]) -> str:
    plain = _plain(found)
    chosen = [w for w in plain if is_path(w) or is_glob(w.bare)] or plain
    return one_line(chosen[0].bare) if chosen else ""


def _list(_verb: str, rest: list[Word]) -> list[CallAsked]:
    rest = [w for w in rest if w.quoted or not w.text.startswith("-")]
    plain = _plain(rest)
    if len(plain) > 1:
        return []
    if plain and is_glob(plain[0].bare):
        return [CallAsked("Glob", {"pattern": one_line(plain[0].bare)})]
    return [CallAsked("List", {"path": one_line(plain[0].bare) if plain else "."})]


def _find(verb: str, rest: list[Word]) -> list[CallAsked]:
    at = next((n for n, w in enumerate(rest) if n and w.low in PLACE), len(rest))
    plain, place = _plain(rest[:at]), _place(rest[at + 1 :])
    globs = [w for w in plain if is_glob(w.bare)]
    if globs:
        return [glob_ask(one_line(w.bare), place) for w in globs]
    if len(plain) != 1:
        return []
    word = plain[0]
    if verb != "find" or (is_path(word) and not word.quoted):
        return [glob_ask(one_line(word.bare), place)]
    return [grep_ask(literal(one_line(word.bare)), place)]


def _run(_verb: str, rest: list[Word]) -> list[CallAsked]:
    said = " ".join(w.low for w in rest)
    if said in TEST_WORDS or (said.startswith("tests in ") and len(rest) == 3):
        place = f" {rest[2].bare}" if said.startswith("tests in ") and is_path(rest[2]) else ""
        return [CallAsked("Bash", {"command": TESTS + place}, tests=not place)]
    return []


def _command(clause: str) -> str:
    """The command line behind "run", as it was written; quotes around all of it go."""
    _, _, rest = clause.partition(" ")
    rest = rest.strip()
    for start in ("the command ", "command "):
        if rest.lower().startswith(start):
            rest = rest[len(start) :].strip()
    found = words(rest)
    if len(found) == 1 and found[0].quoted:
        return found[0].text
    if found and found[0].low in SMALL | NO_COMMAND:
        return ""
    ends = rest.endswith(".") and rest[-2:-1].isalnum()  # the sentence's, not the command's
    return rest[:-1] if ends else rest


def _write(verb: str, rest: list[Word]) -> list[CallAsked]:
    if len(rest) > 2 and verb == "create":
        at = next((n for n, w in enumerate(rest) if w.low in ("with", "containing")), len(rest))
        path = next((w.bare for w in rest[:at] if is_path(w)), "")
        text = between(rest, at + 1, len(rest)) if at < len(rest) else ""
        return [CallAsked("Write", {"file_path": path, "content": text})] if path else []
    at = next((n for n in reversed(range(len(rest))) if rest[n].low in ("to", "into", "as")), 0)
    paths = [w.bare for w in rest[at + 1 :] if is_path(w)]
    if not at or len(paths) != 1 or len(_plain(rest[at + 1 :])) != 1:
        return []
    return [CallAsked("Write", {"file_path": paths[0], "content": between(rest, 0, at)})]


def _edit(verb: str, rest: list[Word]) -> list[CallAsked]:
    """ "edit FILE: replace A with B", "replace A with B in FILE", "change A to B in FILE"."""
    path, start = "", 0
    if verb in ("edit", "in"):
        at = next((n for n, w in enumerate(rest) if w.low in ("replace", "change")), None)
        if at is None:
            return []
        path, start = _place(rest[:at]), at + 1
    every = rest[start : start + 1] != [] and rest[start].low in ("all", "every")
    start += 1 if every else 0
    end = len(rest)
    if not path:
        end = next((n for n in reversed(range(len(rest))) if rest[n].low in PLACE), 0)
        path = next((w.bare for w in rest[end + 1 :] if is_path(w)), "") if end else ""
    middle = next((n for n in range(start, end) if rest[n].low in ("with", "by", "to")), 0)
    old, new = between(rest, start, middle), between(rest, middle + 1, end)
    if not path or middle <= start or not old:
        return []
    return [edit_ask(path, old, new, every)]


def edit_ask(path: str, old: str, new: str, every: bool) -> CallAsked:
    ask = CallAsked("Edit", {"file_path": path, "old_string": old, "new_string": new})
    if every:
        ask.input["replace_all"] = True
    return ask


def _read_back(rest: list[Word]) -> list[CallAsked]:
    plain = _plain(rest)
    if not plain:
        return []
    query = " ".join(w.bare for w in plain[1:] if w.low not in ("about", "on", "query"))
    reference = one_line(plain[0].bare)
    return [CallAsked("ReadBack", {"reference": reference, **({"query": query} if query else {})})]


Form = Callable[[str, list[Word]], list[CallAsked]]
FORMS: dict[str, Form] = {
    **dict.fromkeys(("read", "show", "open", "cat", "view", "display", "print"), _read),
    **dict.fromkeys(("grep", "search", "rg"), _grep),
    **dict.fromkeys(("list", "ls"), _list),
    **dict.fromkeys(("find", "glob", "locate"), _find),
    **dict.fromkeys(("run", "execute"), _run),
    **dict.fromkeys(("write", "create", "save"), _write),
    **dict.fromkeys(("edit", "replace", "change", "in"), _edit),
}


def begins(clause: str) -> bool:
    """Whether a clause begins with a verb of a request."""
    first = clause[:40].split(maxsplit=1)
    return bool(first) and first[0].lower().strip(",:") in FORMS and first[0].lower() != "in"


def greedy(clause: str) -> bool:
    """Whether a clause is a command line so far, which no comma or semicolon ends."""
    found = words(clause)
    if not found or found[0].low not in ("run", "execute") or len(found) < 2:
        return False
    return not _run("run", found[1:]) and not (len(found) == 2 and found[1].quoted)


def written_file(clause: str) -> str:
    """The file of "write FILE" or "create FILE with": its text stands elsewhere."""
    found = words(clause.rstrip(":： "))
    if not found or found[0].low not in ("write", "create", "save"):
        return ""
    paths = [w.bare for w in found[1:] if is_path(w)]
    return paths[0] if len(paths) == 1 else ""


def asks(clause: str) -> list[CallAsked]:
    """The calls a clause asks for, or none."""
    found = words(clause)
    if not found or found[0].low not in FORMS:
        return []
    verb, rest = found[0].low, found[1:]
    if verb == "read" and rest and rest[0].low == "back":
        return _read_back(rest[1:])
    out = FORMS[verb](verb, rest)
    if not out and verb in ("run", "execute") and (command := _command(clause)):
        return [CallAsked("Bash", {"command": command})]
    return out
