"""Before a call of Claude Code runs: hold it where a rule of the user's speaks against it.

    reverie hook < event.json

Told of a call as a PreToolUse event on standard input; answers with a decision and the rule as its
reason, or with nothing, and then the call goes its way. It starts for every call, so it loads the
matcher alone (leaf modules, not the engine) and of the compiled rules only what the index names.
They are found by the working folder in the event and REVERIE_HOME.

A rule that reminds holds a call once in a turn of the user's, and at most three rules do, unless
the call cannot be taken back; calls behind a held one of the same answer wait. What was held is
kept in a small file for each session. Rules of the user's own memory hold in every project. A
folder may have come from anybody: a `.git` that only claims to be a worktree of another repository
has no rules of that one, and no pipe or endless file is waited for. Whatever goes wrong here, the
call is not held: an agent must not stop because a file could not be read.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import time
from types import ModuleType

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from typing import Any

MAX_EVENT = 16 * 1024 * 1024
MAX_HELD = 3
_DID = {"remind": "held", "ask": "asked", "block": "blocked"}
SOON = 600
"""Seconds within which a model makes a call that was held again."""
MAX_RULES = 64 * 1024 * 1024
MAX_POINTER = 4_096
TAIL = 256 * 1024
"""Bytes at the end of a transcript in which the user's last words are looked for."""


def _leaves() -> None:
    """Let the leaf modules be imported by name without loading the packages they lie in."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name in ("reverie", "reverie.rules", "reverie.text"):
        if name not in sys.modules:
            stub = ModuleType(name)
            stub.__path__ = [os.path.join(package, *name.split(".")[1:])]
            sys.modules[name] = stub


def hook() -> int:
    """Answer any event of Claude Code on standard input; return the exit status."""
    if os.environ.get("REVERIE_INSIDE"):  # an agent program that we ask started this
        return 0
    data = sys.stdin.buffer.read(MAX_EVENT)
    if b'"PreToolUse"' in data:
        return main(data)
    from reverie.apps.hook import events

    return events.main(io.BytesIO(data), sys.stdout)


def main(data: bytes | None = None) -> int:
    try:
        event: Any = json.loads(sys.stdin.buffer.read(MAX_EVENT) if data is None else data)
        answer = answer_event(event) if isinstance(event, dict) else None  # pyright: ignore[reportUnknownArgumentType]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        sys.stderr.write(f"reverie: the call was not held against rules: {str(error)!a}\n")
        return 0
    if answer is not None:
        sys.stdout.write(json.dumps({"hookSpecificOutput": answer}, ensure_ascii=False))
    return 0


def answer_event(event: dict[str, Any]) -> dict[str, Any] | None:
    """What to answer to an event, or nothing."""
    home, cwd = _home(), os.path.realpath(str(event.get("cwd") or os.getcwd()))
    _leaves()
    from reverie.rules.rule_file import FOLDER, PERSONAL, PackedRules, rule_file_name

    folder = os.path.join(home, FOLDER)
    sources: list[
        tuple[Any, str, str]
    ] = []  # rules, their ledger, what stands before a file's name
    for root in _roots(cwd):
        path = os.path.join(folder, rule_file_name(root))
        data = None if sources else _read(path + ".rules", MAX_RULES)
        if data is not None and (rules := PackedRules(data)).root == root:
            sources.append((rules, path + ".ledger", ""))
    own = os.path.join(home, "projects", "personal")
    path = os.path.join(folder, rule_file_name(own))
    if (data := _read(path + ".rules", MAX_RULES)) is not None:
        try:
            sources.append((PackedRules(data), path + ".ledger", PERSONAL))
        except (ValueError, LookupError, TypeError):
            sys.stderr.write("reverie: the rules of your own memory cannot be read\n")
    return _decide(event, sources, folder, cwd) if sources else None


def _decide(
    event: dict[str, Any], sources: list[tuple[Any, str, str]], folder: str, cwd: str
) -> dict[str, Any] | None:
    from reverie.rules.calls import CallContext, parse
    from reverie.rules.match import ASK, BLOCK, REMIND, WAITS, is_irrevocable
    from reverie.rules.rule_file import rules_for_call

    tool, given = str(event.get("tool_name") or ""), event.get("tool_input")
    held = _ShownRules(folder, event)
    found: list[Any] = []
    log: list[tuple[str, str, str]] = []
    final = False
    for rules, ledger, prefix in sources:
        root = _roots(cwd)[-1] if prefix else rules.root
        place = CallContext(
            cwd, root, os.path.expanduser("~"), os.path.realpath, None if prefix else _project_of
        )
        call = parse(tool, given, place)
        for rule in rules_for_call(call, rules.index, rules.rule_at):
            if os.path.exists(os.path.join(rules.folder, rule.get("file", ""))):
                final = final or is_irrevocable(call, rules.final)
                found.append({**rule, "file": prefix + rule.get("file", ""), "ledger": ledger})
    if not found:
        return _answer("deny", WAITS) if held.is_behind() else None
    from reverie.rules.match import rules_text

    held.begin_turn()
    blocks, asks, reminds = (
        [rule for rule in found if rule["level"] == level] for level in (BLOCK, ASK, REMIND)
    )
    fresh = [rule for rule in reminds if rule["file"] not in held.files]
    fresh = fresh if final else fresh[: max(0, MAX_HELD - len(held.files))]
    decision, shown = ("ask", asks) if asks else ("", [])
    if blocks or fresh:
        decision, shown = "deny", blocks + fresh
    elif held.is_behind():
        return _answer("deny", WAITS)
    log += [(rule["ledger"], rule["file"], "matched") for rule in found]
    log += [(rule["ledger"], rule["file"], _DID[rule["level"]]) for rule in shown]
    if decision != "deny":  # it runs, whether it was held before or three others were
        log += [(rule["ledger"], rule["file"], "broken") for rule in reminds]
    held.add([rule["file"] for rule in fresh], decision == "deny")
    _count(log, held.session)
    return _answer(decision, rules_text(shown, asks=decision == "ask")) if decision else None


def _answer(decision: str, reason: str) -> dict[str, Any]:
    return {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }


# --- where the rules are


def _home() -> str:
    named = os.environ.get("REVERIE_HOME", "").strip() or "~/.reverie"
    return os.path.normpath(os.path.expanduser(named))


def _roots(cwd: str) -> list[str]:
    """The folders whose rules may count here, the nearest first: the repository that a folder
    belongs to, also where it is a worktree of another, else the folder itself."""
    found: list[str] = []
    folder = cwd
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isfile(git):
            found += _main_root(git)
        if os.path.lexists(git):
            return [*found, folder]
        above = os.path.dirname(folder)
        if above == folder:
            return [cwd]
        folder = above


def _project_of(path: str) -> str:
    """The root of the repository that a path is in, "" outside of one."""
    roots = _roots(path)
    return roots[0] if os.path.lexists(os.path.join(roots[-1], ".git")) else ""


def _main_root(git: str) -> list[str]:
    """The repository that a worktree's `.git` file leads to, where that repository knows of it."""
    linked = _text(git).partition("gitdir:")[2].strip()
    linked = os.path.realpath(os.path.join(os.path.dirname(git), linked))
    common = _text(os.path.join(linked, "commondir")).strip()
    back = os.path.join(linked, _text(os.path.join(linked, "gitdir")).strip())
    if not common or os.path.realpath(back) != os.path.realpath(git):
        return []
    whole = os.path.realpath(os.path.join(linked, common))
    if os.path.dirname(linked) != os.path.join(whole, "worktrees"):
        return []
    return [os.path.dirname(whole)] if os.path.basename(whole) == ".git" else [whole]


def _text(path: str) -> str:
    return (_read(path, MAX_POINTER) or b"").decode("utf-8", "replace")


def _read(path: str, most: int, end: bool = False) -> bytes | None:
    """A plain file up to so many bytes, or its end; None where it is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return None
        if end:
            file.seek(max(0, found.st_size - most))
        return file.read(most)


# --- what was held in this turn


class _ShownRules:
    """The rules that were shown since the user's last words, in one session. A client may write
    these words down only after its first call, so what was shown before counts for them; and the
    very call that was held, made again soon, is the model's answer to that, whatever words stand
    there by now."""

    def __init__(self, folder: str, event: dict[str, Any]) -> None:
        self.session = str(event.get("session_id") or "")
        name = "".join(sign for sign in self.session if sign.isalnum() or sign in "-_")[:80]
        self._path = os.path.join(folder, f"held-{name}.json") if name else ""
        self._transcript = str(event.get("transcript_path") or "")
        self._event = event
        self._turn = self._call = ""
        self.files: list[str] = []
        found: Any
        try:
            found = json.loads(_read(self._path, MAX_EVENT) or b"{}") if self._path else {}
        except ValueError:
            found = {}
        self._kept: dict[str, Any] = found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownMemberType]
        self._is_soon = time.time() - float(self._kept.get("at") or 0) < SOON

    def is_behind(self) -> bool:
        """Whether a call before this one in the same answer was held, as far as the client's
        transcript tells."""
        own, held = str(self._event.get("tool_use_id") or ""), str(self._kept.get("id") or "")
        if not own or not held or own == held or not self._is_soon:
            return False
        answers: dict[str, list[str]] = {}
        for row in (_read(self._transcript, TAIL, end=True) or b"").split(b"\n"):
            if b'"tool_use"' in row and (held.encode() in row or own.encode() in row):
                message: Any = json.loads(row).get("message") or {}
                ids = [str(one.get("id")) for one in message.get("content") or () if "id" in one]
                answers.setdefault(str(message.get("id")), []).extend(ids)
        return any(
            held in ids and own in ids and ids.index(held) < ids.index(own)
            for ids in answers.values()
        )

    def begin_turn(self) -> None:
        """Take over what was shown in this turn."""
        kept, self._turn, self._call = self._kept, _turn(self._transcript), _call_hash(self._event)
        again = kept.get("call") == self._call and self._is_soon
        if again or kept.get("turn") in ("", self._turn):
            self.files = [str(one) for one in kept.get("files", ())]

    def add(self, files: list[str], denies: bool) -> None:
        """Keep what is shown now; and that what was shown before belongs to this turn."""
        self.files += files
        if not self._path or not (self.files or denies):
            return
        kept = {"turn": self._turn, "files": self.files, "at": time.time()}
        kept["call"] = (
            self._call if files else ""
        )  # one that was let through is no answer next time
        kept["id"] = str(self._event.get("tool_use_id") or "") if denies else ""
        temporary = f"{self._path}.{os.getpid()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(kept, file)
        os.replace(temporary, self._path)


def _call_hash(event: dict[str, Any]) -> str:
    """What tells a call from others."""
    import hashlib

    given = json.dumps([event.get("tool_name"), event.get("tool_input")], sort_keys=True)
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def _turn(transcript: str) -> str:
    """What names the user's last words in Claude Code's transcript; "" where they are not told."""
    rows = (_read(transcript, TAIL, end=True) or b"").split(b"\n")
    for row in reversed(rows):
        if b'"type":"user"' in row and b'"tool_result"' not in row and b'"isMeta":true' not in row:
            start = row.find(b'"uuid":"')
            return row[start + 8 : start + 44].decode("ascii", "replace") if start >= 0 else ""
    return ""


def _count(events: list[tuple[str, str, str]], session: str) -> None:
    """Add what happened to the ledger of each rule."""
    now = round(time.time())
    for path, file, event in events:
        name = file.removeprefix("personal/")
        row = json.dumps({"at": now, "rule": name, "event": event, "session": session}) + "\n"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "ab") as kept:
                kept.write(row.encode())
        except OSError:
            return


if __name__ == "__main__":
    sys.exit(main())
