"""The state that a folded part tells, made without a model.

Files changed, calls that failed and whether they succeeded later, the last run of each test
command, commits and pushes, questions that nobody came back to; and the calls by what they
touched. All of it is read from what was recorded. Where that does not tell, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reverie.layers.collapse.lines import (
    failed,
    git_lines,
    is_command,
    one_line,
    run_verdict,
    texts,
)
from reverie.text.format import utc_minute
from reverie.transcript import claude_code
from reverie.transcript.blocks import Block, Json, text_of
from reverie.transcript.mentions import PATH_KEYS, reference
from reverie.transcript.records import AssistantMessage, Entry, UserMessage, user_words
from reverie.transcript.view import View

LISTED = 12  # files or failures that a state names, at most
RUNS = 3  # commands whose last run is told
GIT = 8  # commits and pushes
ASKED = 2  # open questions
QUESTION = 160  # characters of one
REFERENCES = 3  # on a line, at most
SUBJECTS = 20  # lines of calls in a part, at most
SUBJECT = 40  # characters of what a command or search was asked
CALLS = "[Calls, by what they touched]"
_WRITES = frozenset(
    ("new_string", "content", "new_source", "edits", "new_str", "file_text", "newText")
)
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.{1,300})$")
_OUTPUT = re.compile(r"(?s)\s*\d?>&?\s*\S+|\s*(?<!\|)\|(?!\|).*")  # where a command's output goes
_TELLING = re.compile(r"[^\W\d_]{5,}")


class PartState:
    """What happened in some messages, told by what was recorded of it and of what came later."""

    def __init__(self, view: View, entries: Sequence[Entry], *, joined: bool) -> None:
        self.joined = joined
        self.made: dict[str, list[Block]] = {}  # calls, by message
        self.bad: set[str] = set()  # calls that failed
        self._failed: dict[str, list[str]] = {}  # what failed, with a mark for each time
        self._changed: dict[str, None] = {}
        self._touched: dict[str, list[str]] = {}
        self._lasting: set[str] = set()  # of these, what changed something, failed, or ran tests
        self._runs: dict[str, str] = {}
        self._git: list[str] = []
        self._asked: list[tuple[str, str]] = []  # the message behind which it is open, the question
        inside = {entry.id for entry in entries}
        calls: dict[str, Block] = {}
        behind = view.entries.since(view.entries.place(entries[0].id) or 0) if entries else ()
        for entry in behind:
            record = entry.record
            if isinstance(record, AssistantMessage):
                made = [b for b in record.blocks if b.type == "tool_use"]
                calls.update((b.call, b) for b in made)
                if entry.id in inside:
                    self.made[entry.id] = made
            elif isinstance(record, UserMessage):
                for block in record.blocks:
                    if block.type == "tool_result" and block.call in calls:
                        self._take(calls[block.call], block, entry, is_here=entry.id in inside)
        self._asked += _unanswered(view, entries)
        self._asked = [(at, told) for at, told in self._asked if not _is_touched(view, at, told)]

    def _take(self, call: Block, result: Block, entry: Entry, *, is_here: bool) -> None:
        before = self._failed.get(_about(call)) if self._failed else None
        if not is_here and not before:
            return  # what came behind the part may only have repaired what failed here
        text = text_of(result.value.get("content"))
        bad = failed(call, result, text)
        if before and not bad:
            before[-1] = "later ok"
        if not is_here:
            return
        given, about = call.value.get("input"), subject(call)
        ref, at = reference(call.call), utc_minute(entry.at)[11:] if entry.at > 0 else ""
        when = f"{ref} {at}".rstrip()
        self._touched[about] = [*self._touched.pop(about, []), f"!{ref}" if bad else ref]
        verdict, git = "", list[str]()
        if is_command(call):
            command = str(given.get("command")) if isinstance(given, dict) else ""
            if verdict := run_verdict(text, bad=bad):
                run = one_line(_OUTPUT.sub("", command), SUBJECT)
                self._runs.pop(run, None)
                self._runs[run] = f"{run} {verdict} {when}"
            git = git_lines(command, text)
            self._git += git
        if bad or verdict or git or written_paths(given):
            self._lasting.add(about)
        if not bad:
            for path in written_paths(given):
                self._changed.pop(path, None)
                self._changed[path] = None
            return
        self.bad.add(call.call)
        refused = "refused by the user " if claude_code.quotes_user(text) else ""
        self._failed.setdefault(_about(call), []).append(refused + when)
        if call.get("name") == claude_code.ASKS and "(No answer provided)" in text:
            self._asked.append((entry.id, one_line(_first_question(given), QUESTION)))

    def text(self) -> str:
        """The state, a line for each kind; kinds of which there is nothing are left out."""
        told = (
            ("Changed", by_folder(list(self._changed))),
            ("Failed", ", ".join(self._failures())),
            ("Last test runs", "; ".join(list(self._runs.values())[-RUNS:])),
            ("Commits and pushes", "; ".join(self._git[-GIT:])),
            ("Asked and not answered", " ".join([told for _, told in self._asked[-ASKED:]])),
        )
        return "\n".join([f"{name}: {what}." for name, what in told if what])

    def _failures(self) -> Iterator[str]:
        shown = list(self._failed.items())[-LISTED:]
        for about, times in shown:
            count = f" ({len(times)})" if len(times) > 1 else ""
            yield f"{about} {times[-1]}{count}"
        if others := sum(map(len, list(self._failed.values())[:-LISTED])):
            yield f"{others} others"

    def calls(self) -> list[str]:
        """The calls by what they touched last, each with its newest references; once parts are
        joined only what changed something, failed, or ran tests."""
        kept = {a: r for a, r in self._touched.items() if not self.joined or a in self._lasting}
        shown = dict(list(kept.items())[-SUBJECTS:])
        out = [CALLS] if shown else []
        if shown and len(self._touched) > len(shown):
            out.append(f"[{len(self._touched) - len(shown)} others]")
        for about, refs in shown.items():
            older = f" ({len(refs) - REFERENCES} older)" if len(refs) > REFERENCES else ""
            out.append(f"{about} {' '.join(refs[-REFERENCES:])}{older}")
        return out


# --- questions


def words_of(entry: Entry) -> str:
    """The user's words in a message; empty where it has none."""
    record = entry.record
    if not isinstance(record, UserMessage):
        return ""
    found = [user_words(b.get("text"), record.origin) for b in record.blocks]
    return "\n".join(filter(None, found))


def _unanswered(view: View, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Questions in these messages after which the one who asked spoke next."""
    inside = {entry.id for entry in entries}
    question, who, worked, at = "", "", False, ""
    for entry in view.entries.since(view.entries.place(entries[0].id) or 0) if entries else ():
        record = entry.record
        if isinstance(record, AssistantMessage):
            worked = True
            if any(b.type == "tool_use" for b in record.blocks):
                continue
            speaker, words = "assistant", texts(record.blocks)
        else:
            speaker, words = "user", words_of(entry)
        if not words.strip():
            continue
        if question and speaker == who and worked:
            yield at, question
        if entry.id not in inside:
            break
        question, who, worked, at = _last_question(words), speaker, False, entry.id


def _is_touched(view: View, at: str, question: str) -> bool:
    """Whether anybody came back to a question: a later message has a telling word of it. One
    without such words cannot be told."""
    telling = set(_TELLING.findall(question.casefold()))
    for entry in view.entries.since((view.entries.place(at) or 0) + 1):
        record = entry.record
        said = texts(record.blocks) if isinstance(record, AssistantMessage) else words_of(entry)
        if not telling.isdisjoint(_TELLING.findall(said.casefold())):
            return True
    return not telling


def _last_question(text: str) -> str:
    """The last sentence of a text, where it asks something."""
    text = text[-1_000:].rstrip("\"')*_] \n\t")
    if not text.endswith(("?", "？")):
        return ""
    start = max([text.rfind(sign, 0, -1) for sign in ".!?。！？\n"]) + 1
    return one_line(text[start:].strip(), QUESTION)


def _first_question(given: Json) -> str:
    asked = given.get("questions") if isinstance(given, dict) else None
    first = asked[0] if isinstance(asked, list) and asked else None
    return str(first.get("question") or "") if isinstance(first, Mapping) else ""


# --- what a call was about


def path_of(given: Json) -> str:
    """The file or folder that a call names, but for one it searches."""
    if not isinstance(given, dict) or "pattern" in given:
        return ""
    return next((v for k in PATH_KEYS if isinstance(v := given.get(k), str)), "")


def written_paths(given: Json) -> list[str]:
    """The files that a call writes, as far as its input tells."""
    if not isinstance(given, dict):
        return []
    if (path := path_of(given)) and not _WRITES.isdisjoint(given):
        return [path]
    patches = [v for v in given.values() if isinstance(v, str) and v.startswith("*** Begin Patch")]
    return [path.strip() for patch in patches for path in _PATCHED.findall(patch)]


def subject(call: Block) -> str:
    """What a call was about: its path; else its tool and the first words of what was asked."""
    given = call.value.get("input")
    if path := path_of(given):
        return path
    first = next(iter(given.values()), "") if isinstance(given, dict) else ""
    told = one_line(first if isinstance(first, str) else text_of(first), SUBJECT)
    return f"{call.get('name')} {told}".rstrip()


def _about(call: Block) -> str:
    """What failed: the tool and its file, or the command; without the signs that part a list."""
    path = path_of(call.value.get("input"))
    about = f"{call.get('name')} {path.rpartition('/')[2]}" if path else subject(call)
    return about.replace("...", "…").replace(", ", " ").replace(". ", " ").rstrip(".")


def by_folder(paths: Sequence[str]) -> str:
    """Paths by their folders, the newest at the end."""
    shown = paths[-LISTED:]
    folders: dict[str, list[str]] = {}
    for path in shown:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    told = [f"in {folder}: {', '.join(names)}" for folder, names in folders.items()]
    more = [f"{len(paths) - len(shown)} others"] if len(paths) > len(shown) else []
    return "; ".join([*more, *told])
