"""The state that a folded part tells, made without a model.

Files changed, calls that failed, why, and whether they succeeded later, the last run of each test
command, commits and pushes, questions that nobody came back to; what was said before a change or
after a failure; calls by what they touched. All of it is read from what was recorded. Where that
does not tell, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reverie.layers.collapse.excerpts import clause, one_line
from reverie.layers.collapse.lines import (
    failed,
    failure_lines,
    git_lines,
    is_command,
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
WHY = 120  # characters of why something failed, or of what was said beside a call
SAID = (12, 6)  # of these, in a part and in joined ones
SAYS = 6  # words from which what was said beside a call says something
REFERENCES = 3  # on a line, at most
SUBJECTS = 14  # lines of calls in a part, at most
COMMAND = 400  # characters by which two commands are the same
SUBJECT = 40  # characters of what a command or search was asked
CALLS = "[Calls by what they touched, the newest reference last: * changed it, ! failed]"
_WRITES = frozenset(
    ("new_string", "content", "new_source", "edits", "new_str", "file_text", "newText")
)
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.{1,300})$")
_OUTPUT = re.compile(r"\s*\d?>&?\s*\S+|\s*(?<!\|)\|(?!\|)[^&;\n]*")  # where a command's output goes
_SHOWN = re.compile(r"\s*2>&1|\s*\|\s*(?:head|tail)\b[^&|;\n]*")  # how much of it is shown
_TAG = re.compile(r"</?tool_use_error>")
_TELLING = re.compile(r"[^\W\d_]{5,}")


class PartState:
    """What happened in some messages, told by what was recorded of it and of what came later."""

    def __init__(self, view: View, entries: Sequence[Entry], *, joined: bool) -> None:
        self.joined = joined
        self.made: dict[str, list[Block]] = {}  # calls, by message
        self.bad: set[str] = set()  # calls that failed
        self._failed: dict[tuple[str, str], list[str]] = {}  # with a mark for each time
        self._why: dict[tuple[str, str], str] = {}  # the line that tells it
        self._changed: dict[str, None] = {}
        self._fresh: dict[str, None] = {}  # of these, since the last commit
        self._beside: dict[str, tuple[str, str]] = {}  # what was said, by what it was about
        self._touched: dict[str, list[str]] = {}
        self._lasting: set[str] = set()  # of these, what changed something, failed, or ran tests
        self._runs: dict[str, str] = {}
        self._git: list[tuple[str, str]] = []
        self._asked: list[tuple[str, str]] = []  # the message behind which it is open, the question
        inside = {entry.id for entry in entries}
        calls: dict[str, Block] = {}
        behind = view.entries.since(view.entries.place(entries[0].id) or 0) if entries else ()
        trouble = ""  # what failed right before
        for entry in behind:
            record = entry.record
            if isinstance(record, AssistantMessage):
                made = [b for b in record.blocks if b.type == "tool_use"]
                calls.update((b.call, b) for b in made)
                if entry.id in inside:
                    self.made[entry.id] = made
                    self._listen(entry.id, texts(record.blocks), made, trouble)
                trouble = ""
            elif isinstance(record, UserMessage):
                for block in record.blocks:
                    if block.type == "tool_result" and block.call in calls:
                        self._take(calls[block.call], block, entry, is_here=entry.id in inside)
                        trouble = block.call if block.call in self.bad else trouble
        self.beside = dict(list(self._beside.values())[-SAID[joined] :])
        self._asked += _unanswered(view, entries)
        self._asked = [(at, told) for at, told in self._asked if not _is_touched(view, at, told)]

    def _listen(self, ident: str, text: str, made: Sequence[Block], trouble: str) -> None:
        """Keep what was said beside calls, the newest of each file: before a change or a commit,
        after a failure, or at some length."""
        inputs = [b.value.get("input") for b in made]
        commits = any("git commit" in str(g.get("command")) for g in inputs if isinstance(g, dict))
        about = [path for g in inputs for path in written_paths(g)]
        about += ["git" * commits, trouble, ident * (len(text) > 2 * WHY)]
        key = next(filter(None, about), "")
        if made and key and len(text.split()) >= SAYS:
            self._beside.pop(key, None)
            self._beside[key] = ident, one_line(clause(" ".join(text.split()), WHY), 2 * WHY)

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
        written = written_paths(given)
        mark = "!" if bad else "*" if written else ""
        self._touched[about] = [*self._touched.pop(about, []), mark + ref]
        ran = is_command(call) and self._take_command(given, text, when, bad=bad)
        if bad or ran or written:
            self._lasting.add(about)
        if not bad:
            for path in written:
                for known in (self._changed, self._fresh):
                    known.pop(path, None)
                    known[path] = None
            return
        self.bad.add(call.call)
        refused = "refused by the user " if claude_code.quotes_user(text) else ""
        self._failed.setdefault(_about(call), []).append(refused + when)
        if not refused:
            self._why[_about(call)] = _reason(text)
        if call.get("name") == claude_code.ASKS and "(No answer provided)" in text:
            self._asked.append((entry.id, one_line(_first_question(given), QUESTION)))

    def _take_command(self, given: Json, text: str, when: str, *, bad: bool) -> bool:
        """Whether a command ran tests or asked git; what came of it."""
        command = str(given.get("command")) if isinstance(given, dict) else ""
        if verdict := run_verdict(text, bad=bad):
            run = one_line(_OUTPUT.sub("", command), SUBJECT)
            self._runs.pop(run, None)
            self._runs[run] = f"{run} {verdict} {when}"
        git = git_lines(command, text)
        for kind, _ in git:
            if kind == "commit":
                self._fresh.clear()
            elif kind == "status":  # only the newest
                self._git = [one for one in self._git if one[0] != kind]
        self._git += git
        return bool(verdict or git)

    def text(self) -> str:
        """The state, a line for each kind; kinds of which there is nothing are left out."""
        kinds = [kind for kind, _ in self._git if kind != "status"]
        fresh = [path.rpartition("/")[2] for path in self._fresh]
        open_files = (
            ", ".join(fresh[-LISTED:]) if "commit" in kinds else "no commit seen" if fresh else ""
        )
        git = [line for _, line in self._git[-GIT:]]
        git += ["no push seen after it"] if kinds[-1:] == ["commit"] else []
        told = (
            ("Changed", by_folder(list(self._changed))),
            ("Not committed by then", open_files),
            ("Failed", ", ".join(self._failures())),
            ("Last test runs", "; ".join(list(self._runs.values())[-RUNS:])),
            ("Commits and pushes", "; ".join(git)),
            ("Asked and not answered", " ".join([told for _, told in self._asked[-ASKED:]])),
        )
        return "\n".join([f"{name}: {what}." for name, what in told if what])

    def _failures(self) -> Iterator[str]:
        shown = list(self._failed.items())[-LISTED:]
        for about, times in shown:
            count = f" ({len(times)})" if len(times) > 1 else ""
            why = f" ({self._why[about]})" if self._why.get(about) else ""
            yield f"{about[0]}{why} {times[-1]}{count}"
        if others := sum(map(len, list(self._failed.values())[:-LISTED])):
            yield f"{others} others"

    def calls(self) -> list[str]:
        """The calls by what they touched last, each with its newest references: first of all what
        changed something, failed, or ran tests; once parts are joined nothing else."""
        kept = [about for about in self._touched if not self.joined or about in self._lasting]
        shown = sorted(kept, key=self._lasting.__contains__)[-SUBJECTS:]
        out = [CALLS] if shown else []
        for about in filter(shown.__contains__, kept):
            refs = self._touched[about]
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


def subject(call: Block, width: int = SUBJECT) -> str:
    """What a call was about: its path; else its tool and the first words of what was asked."""
    given = call.value.get("input")
    if path := path_of(given):
        return path
    first = next(iter(given.values()), "") if isinstance(given, dict) else ""
    told = one_line(_SHOWN.sub("", first if isinstance(first, str) else text_of(first)), width)
    return f"{call.get('name')} {told}".rstrip()


def _about(call: Block) -> tuple[str, str]:
    """What failed, as it is shown, without the signs that part a list: the tool and its file, or
    the command; and as it is known again."""
    path = path_of(call.value.get("input"))
    shown = f"{call.get('name')} {path.rpartition('/')[2]}" if path else subject(call)
    return _unparted(shown), path or subject(call, COMMAND)


def _reason(text: str) -> str:
    """The line of a failed result that tells why, without the signs that part a list."""
    told = [_TAG.sub("", line[4:]) for line in failure_lines(text)]
    said = [line for line in told if not line.endswith("(most recent call last):")]
    return _unparted(one_line(clause((said or told)[0], WHY), 2 * WHY))


def _unparted(text: str) -> str:
    return text.replace("...", "…").replace(", ", " ").replace(". ", " ").rstrip(".")


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
