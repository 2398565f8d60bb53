"""Rules, modes, what an allow rule covers and a command may start.

Who may do what: rules, a mode for what no rule covers, and a person to ask.

Reading inside the project is allowed; writes and commands ask; paths outside ask.
Protected files (git's internals, keys, our own home and settings) ask whatever the
rules say. A rule that a repository brings along may only forbid. A deny rule on a
command is good manners and no wall: `text/shell_commands` says what it sees and what it cannot.

A path is judged by the file it really names; a command that is not plainly one command
is never allowed by a rule. What a person says when asked is handed on as their own words, never
as part of a result. Nothing is written here but the one file that `keep` names.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from reverie.light import dataclass
from reverie.store.paths import beneath, format_path
from reverie.store.project import Project
from reverie.store.sensitive_paths import is_secret
from reverie.text.safety import clean
from reverie.text.shell import plain_words
from reverie.text.shell_commands import starts
from reverie.toolbox import path_patterns
from reverie.toolbox.tool import Denied, Files, Input, ProposedEdit, Tool

Verdict: TypeAlias = Literal["allow", "ask", "deny"]

MAX_WORDS = 10_000  # characters of what a person says at one question
OPEN_ENDS = (" *", ":*")
"""How a command's pattern ends where anything may follow."""
_READ = "Read"
_RULED = frozenset({"settings.json", "settings.local.json"})


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """`Tool(pattern)` and what becomes of it. An empty pattern covers every call.

    For a path: a glob from the project's root, `/` or `~/`; it covers what lies below.
    For a command: its words; with ` *` at the end, anything may follow.
    """

    tool: str
    pattern: str = ""
    verdict: Verdict = "allow"

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked, and the rule that would save asking again."""

    tool: str
    subject: str  # the path or the command
    reason: str
    rule: PermissionRule | None = None
    input: Input | None = None
    change: ProposedEdit | None = None  # what would become of a file, where it can be foreseen
    runs: bool = False  # whether the subject is a command line


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """Yes or no; for how long; what the person said to it, or why they said nothing."""

    allow: bool
    remember: Literal["no", "session", "project"] = "no"
    words: str = ""  # the person's own
    reason: str = ""  # ours, where the person did not answer
    rule: PermissionRule | None = None  # what to remember, where it is not what was offered


Asker: TypeAlias = Callable[[Question], Awaitable[PermissionAnswer]]
Foresee: TypeAlias = "Callable[[PermissionDecision], Awaitable[ProposedEdit | None]]"


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """What the rules say of a call."""

    verdict: Verdict
    reason: str
    subject: str = ""
    path: Path | None = None
    protected: bool = False
    words: str = ""  # what the person said when asked


@dataclass(frozen=True, slots=True)
class PermissionRoots:
    """The folders a judgement stands on; all real paths."""

    root: Path
    user: Path  # the person's home folder
    home: Path  # reverie's
    readable: tuple[Path, ...] = ()  # outside the project, read without asking
    writable: tuple[Path, ...] = ()  # written without asking: the memory folder

    @classmethod
    def of(
        cls, project: Project, *, readable: Iterable[Path] = (), writable: Iterable[Path] = ()
    ) -> PermissionRoots:
        """Return the folders of a project, and those beside them."""
        return cls(
            project.worktree.resolve(),
            Path(project.user_home).resolve(),
            project.home.resolve(),
            tuple(path.resolve() for path in readable),
            tuple(path.resolve() for path in writable),
        )

    def protected(self, path: Path, writing: bool) -> str:
        """Why a path is protected, or nothing."""
        names = [part.casefold() for part in path.parts]
        if is_secret(path):
            return "it may hold keys or passwords"
        if any(beneath(folder, path) for folder in self.writable):
            return ""
        if beneath(self.home, path) and not any(beneath(f, path) for f in self.readable):
            return "it belongs to Reverie's own files"
        if not writing:
            return ""
        if beneath(self.home, path):
            return "it belongs to Reverie's own files"
        if ".git" in names:
            return "it belongs to git's own files"
        if names[-1] in _RULED and {".reverie", ".claude"}.intersection(names):
            return "it sets what agents may do"
        return ""


class PermissionPolicy:
    """The rules of one session, and what was answered in it."""

    def __init__(
        self,
        ground: PermissionRoots,
        *,
        mode: Verdict = "ask",
        rules: Iterable[PermissionRule] = (),
        asker: Asker | None = None,
        keep: Callable[[PermissionRule], Awaitable[None]] | None = None,
        concern: Callable[[str, Input], str] | None = None,
    ) -> None:
        """`concern` says why a person is to be asked about a call, whatever the rules allow."""
        self.ground = ground
        self.mode: Verdict = mode
        self.rules = list(rules)
        self._asker = asker
        self._keep = keep
        self._concern = concern
        self._asking = anyio.Lock()

    def on(self, ground: PermissionRoots, *more: PermissionRule) -> PermissionPolicy:
        """The same rules, with some more, and the same person, on other folders."""
        other = PermissionPolicy(ground, mode=self.mode, asker=self._asker, keep=self._keep)
        other.rules = [*self.rules, *more] if more else self.rules
        other._asking = self._asking
        return other

    async def check(
        self, tool: Tool, value: Input, files: Files, foresee: Foresee | None = None
    ) -> PermissionDecision:
        """The judgement of a call that may run, or Denied. Before anybody is asked, `foresee` says
        what the call would change, or raises because it would fail."""
        found = self.judge(tool, value, files)
        if found.verdict == "ask":
            async with self._asking:  # one question at a time; an answer may cover the next
                found = self.judge(tool, value, files)
                if found.verdict == "ask":
                    change = await foresee(found) if foresee and self._asker else None
                    found = await self._ask(tool, value, found, change)
        if found.verdict == "deny":
            reason = f"{tool.name} was not permitted: {found.reason}"
            raise Denied(reason, where=found.subject, words=found.words)
        return found

    def judge(self, tool: Tool, value: Input, files: Files) -> PermissionDecision:
        """What rules and defaults say, with nobody asked."""
        found = self._plain(tool, value, files)
        matching = {r.verdict for r in self.rules if self._covers(r, tool, found)}
        if "deny" in matching:
            return replace(found, verdict="deny", reason="a rule forbids it")
        if self._concern is not None and (why := self._concern(tool.name, value)):
            asked = replace(found, verdict="ask", reason=why, protected=True)
            return self._deny_unasked(asked)
        if found.protected:
            return self._deny_unasked(found)
        if "ask" in matching:
            return self._deny_unasked(replace(found, verdict="ask", reason="a rule says to ask"))
        if "allow" in matching or (found.verdict == "ask" and self.mode == "allow"):
            return replace(found, verdict="allow")
        return self._deny_unasked(found)

    def _deny_unasked(self, found: PermissionDecision) -> PermissionDecision:
        if found.verdict == "ask" and self.mode == "deny":
            return replace(found, verdict="deny", reason=f"{found.reason}, and nobody is asked")
        return found

    def _plain(self, tool: Tool, value: Input, files: Files) -> PermissionDecision:
        if tool.command:
            line = str(value.get(tool.command, ""))
            return PermissionDecision("ask", "it runs a command", line)
        if not tool.path:
            verdict: Verdict = "allow" if tool.read_only else "ask"
            return PermissionDecision(verdict, "it may change something")
        named = str(value.get(tool.path, "."))
        path = files.find(named) if tool.read_only else files.target(named)
        return self._path(tool, path)

    def _path(self, tool: Tool, path: Path) -> PermissionDecision:
        ground, subject = self.ground, format_path(str(path))
        if why := ground.protected(path, not tool.read_only):
            return PermissionDecision("ask", why, subject, path, protected=True)
        if any(beneath(folder, path) for folder in ground.writable):
            return PermissionDecision("allow", "", subject, path)
        inside = beneath(ground.root, path)
        if tool.read_only and (inside or any(beneath(f, path) for f in ground.readable)):
            return PermissionDecision("allow", "", subject, path)
        reason = "it writes a file" if inside else "it is outside the project"
        return PermissionDecision("ask", reason, subject, path)

    def _covers(self, rule: PermissionRule, tool: Tool, found: PermissionDecision) -> bool:
        if not _speaks_of(rule, tool.name):
            return False
        if not rule.pattern:
            return True
        if tool.command:
            return covers_command(rule, found.subject)
        return found.path is not None and _covers_path(rule, found.path, self.ground)

    def may_read(self, path: Path) -> bool:
        """Whether a file may be looked at with nobody asked."""
        ground = self.ground
        if ground.protected(path, False):
            return False
        limits = [r for r in self.rules if r.verdict != "allow" and _speaks_of(r, _READ)]
        if any(not r.pattern or _covers_path(r, path, ground) for r in limits):
            return False
        return any(beneath(folder, path) for folder in (ground.root, *ground.readable))

    async def _ask(
        self, tool: Tool, value: Input, found: PermissionDecision, change: ProposedEdit | None
    ) -> PermissionDecision:
        if self._asker is None:
            return replace(found, verdict="deny", reason=f"{found.reason}, and nobody can be asked")
        rule = None if found.protected else suggestion(tool, found, self.ground)
        subject, runs = found.subject or tool.name, bool(tool.command)
        asked = Question(tool.name, subject, found.reason, rule, value, change, runs)
        answer = await self._asker(asked)
        found = replace(found, words=clean_words(answer.words))
        if not answer.allow:
            said = "the user said no, in the words below" if found.words else "the user said no"
            return replace(found, verdict="deny", reason=answer.reason or said)
        if rule is not None and answer.remember != "no":
            rule = answer.rule or rule
            self.rules.append(rule)
            if answer.remember == "project" and self._keep is not None:
                await self._keep(rule)
        return replace(found, verdict="allow")


def clean_words(words: str) -> str:
    """A person's words as they are kept: without terminal escapes, and not without end."""
    text = clean(words).strip()
    if len(text) <= MAX_WORDS:
        return text
    cut = f"[the user said more: {len(text):,} characters, of which these are the first]"
    return f"{text[:MAX_WORDS]}\n{cut}"


def suggestion(
    tool: Tool, found: PermissionDecision, ground: PermissionRoots
) -> PermissionRule | None:
    """The narrowest rule that would cover the same call; None where none would."""
    if tool.command:
        if plain_words(found.subject) is None:
            return None
        return PermissionRule(tool.name, found.subject.strip())
    if found.path is None:
        return PermissionRule(tool.name)
    path = found.path
    if set("*?[]{}").intersection(str(path)):
        return None
    inside = beneath(ground.root, path)
    return PermissionRule(tool.name, str(path.relative_to(ground.root) if inside else path))


def _speaks_of(rule: PermissionRule, tool: str) -> bool:
    """Whether a rule is about the tool of this name."""
    return rule.tool in ("*", tool) or (rule.tool.endswith("*") and tool.startswith(rule.tool[:-1]))


def covers_command(rule: PermissionRule, line: str) -> bool:
    """Whether a rule's pattern speaks of this command line."""
    open_end = rule.pattern.endswith(OPEN_ENDS)
    wanted = plain_words(rule.pattern[:-2] if open_end else rule.pattern)
    if rule.verdict != "allow":
        start = wanted or tuple(rule.pattern.split())
        return any(found[: len(start)] == start for found in starts(line))
    words = plain_words(line)
    if words is None or wanted is None:
        return False
    return words[: len(wanted)] == wanted if open_end else words == wanted


def _covers_path(rule: PermissionRule, path: Path, ground: PermissionRoots) -> bool:
    pattern = rule.pattern
    if pattern.startswith("~/"):
        base, pattern = ground.user, pattern[2:]
    elif pattern.startswith("/"):
        base, pattern = Path("/"), pattern[1:]
    else:
        base = ground.root
    if not beneath(base, path):
        return False
    names = path.relative_to(base).parts
    try:
        test = path_patterns.matcher(pattern.removeprefix("./"), folders=True)
    except path_patterns.BadPattern:
        return rule.verdict != "allow"
    return any(test(names[:n]) for n in range(len(names) + 1))


# --- What an allow rule covers, in words for the person who is about to keep it.
#
# It says of a beginning that anything may follow, and, of programs whose options run other
# programs or write files, which those are. The list names what is common and is no promise that a
# program missing from it does neither.


BEYOND: Mapping[str, str] = {
    "awk": "its scripts run programs and write files",
    "bash": "it runs any program",
    "cargo": "it runs the project's own code",
    "curl": "`-o` writes files, `-d` sends them",
    "env": "it runs any program",
    "find": "`-exec` runs programs, `-delete` deletes",
    "git": "`-c` and `--output` run programs and write files",
    "make": "it runs the project's own code",
    "node": "it runs any code",
    "npm": "it runs the project's own code",
    "perl": "it runs any code",
    "python": "it runs any code",
    "python3": "it runs any code",
    "rsync": "`-e` runs programs",
    "ruby": "it runs any code",
    "sed": "`-i` writes files, and its scripts run programs",
    "sh": "it runs any program",
    "sort": "`-o` writes files",
    "ssh": "it runs any program, elsewhere too",
    "sudo": "it runs any program, as another user",
    "tar": "`--to-command` runs programs",
    "wget": "`-O` writes files",
    "xargs": "it runs any program",
}


def reach(rule: PermissionRule, *, runs: bool) -> str:
    """What the rule covers; `runs` says that its pattern is of a command line."""
    if not rule.pattern:
        return f"every call of {rule.tool}"
    if not runs:
        return f"{rule.tool} of {rule.pattern}, and of nothing else"
    if not rule.pattern.endswith(OPEN_ENDS):
        return "this command alone, word for word"
    start = rule.pattern[:-2].strip()
    told = f"every command that begins with `{start}`, whatever follows"
    words = plain_words(start) or ("",)
    beyond = BEYOND.get(os.path.basename(words[0]))
    return f"{told}: {beyond}" if beyond else told
