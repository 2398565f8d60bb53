"""User hooks: commands of the user's own that run at fixed points of a session.

A hook is told what happens as JSON on its standard input and may answer with JSON: block,
give a reason, add context for the model; plain text is context. It has a time limit and a
bounded output, and it runs under a keeper that ends all it started, also when this program is
killed. Hooks in Claude Code's form, from our settings or its own, are told and heard in its words.
Only files that a repository cannot have brought may name hooks; others are ignored, and
that is said. A hook that hangs, crashes, floods or cannot be understood is reported and never
stops a session; one that was to judge a tool call has not allowed it, so the call is blocked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import anyio

from reverie.errors import NotFound
from reverie.light import dataclass
from reverie.settings.schema import REFUSED, Problem, parse_object
from reverie.settings.sources import POLICY, SettingsFile, environment, settings_files
from reverie.store.project import Project
from reverie.toolbox.tool import ToolFailed
from reverie.transcript.blocks import dump, text_block
from reverie.transcript.records import Attached
from reverie.world import Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.toolbox.process import Command

HookEvent: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "Stop",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
KEY = "hooks"
BLOCKED = 2  # the exit status that blocks, with standard error as the reason
MAX_OUTPUT = 1024 * 1024
MAX_CONTEXT = 10_000
MAX_REASON = 2_000
_MEMBERS = frozenset({"command", "matcher", "timeout"})
_SUBJECTS = {"SessionStart": "source", "PreCompact": "trigger", "PostCompact": "trigger"}
"""What a matcher is held against; for all others the name of a tool."""
_OURS = re.compile(r"reverie\.apps\.hook|\breverie'? hook$")
"""Our own program for Claude Code's hooks, which has nothing to do here."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One command, and when it runs."""

    event: HookEvent
    command: str
    matcher: re.Pattern[str] | None = None  # of the whole tool name; None: every tool
    seconds: float | None = None
    place: str = ""
    claude: bool = False  # told and heard in Claude Code's words

    def fits(self, told: Mapping[str, object]) -> bool:
        subject = str(told.get(_SUBJECTS.get(self.event, "tool_name"), ""))
        return self.matcher is None or self.matcher.fullmatch(subject) is not None


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What the hooks of one event said together."""

    blocked: bool = False
    reason: str = ""
    context: tuple[str, ...] = ()

    def attached(self) -> tuple[Attached, ...]:
        """The added context as records."""
        return tuple(Attached((text_block(frame_hook_text(c)),), "hook") for c in self.context)


NOTHING = HookVerdict()
NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


def frame_hook_text(text: str) -> str:
    """Text of a hook in a frame that it cannot close itself."""
    inside = re.sub(r"<(?=/?hook-context)", "&lt;", text, flags=re.IGNORECASE)
    return f"<hook-context>\n{inside}\n</hook-context>"


# --- which hooks there are


def load_hooks(
    *,
    home: Path,
    root: Path | None,
    policy: Path = POLICY,
    claude: Sequence[SettingsFile] = (),
) -> tuple[tuple[Hook, ...], tuple[Problem, ...]]:
    """All hooks of trusted settings files, the strongest first, Claude Code's own last, and what
    was not taken."""
    hooks: list[Hook] = []
    problems: list[Problem] = []
    for file in (*settings_files(home=home, root=root, policy=policy), *claude):
        if file.value.get("disableAllHooks") is True:
            continue
        if not file.origin.trusted and KEY in file.value:
            reason = f"{REFUSED} cannot run commands"
            problems.append(Problem("warning", file.origin.place, KEY, reason, "refused"))
            continue
        found, wrong = hooks_in(file)  # what else is wrong, `load` says
        hooks += found
        problems += wrong
    return tuple(hooks), tuple(problems)


def hooks_in(file: SettingsFile) -> tuple[list[Hook], list[Problem]]:
    """The hooks that a file names, whoever wrote it, and what was wrong with them."""
    place, given = file.origin.place, file.value.get(KEY)
    if given is None:
        return [], []
    if not isinstance(given, dict):
        return [], [Problem("error", place, KEY, "must be an object of events")]
    hooks: list[Hook] = []
    problems: list[Problem] = []
    for event, rows in cast("dict[str, object]", given).items():
        key = f"{KEY}.{event[:100]}"
        if event not in EVENTS:
            if event in _CLAUDES_ALONE:
                continue
            problems.append(Problem("warning", place, key, f"unknown; one of {', '.join(EVENTS)}"))
        elif not isinstance(rows, list):
            problems.append(Problem("error", place, key, "must be a list"))
        else:
            for hook in _rows(event, cast("list[object]", rows), place):
                if isinstance(hook, str):
                    problems.append(Problem("error", place, key, hook))
                elif not _OURS.search(hook.command):
                    hooks.append(hook)
    return hooks, problems


_CLAUDES_ALONE = frozenset(
    {"SessionEnd", "SubagentStart", "SubagentStop", "Notification", "PermissionRequest"}
    | {"PostToolUseFailure", "PermissionDenied", "Setup", "TaskCompleted", "ConfigChange"}
)
"""Events that Claude Code has and we do not: no mistake of whoever wrote them down."""


def _rows(event: HookEvent, rows: Sequence[object], place: str) -> Iterator[Hook | str]:
    """The hooks of one event, in our form or in Claude Code's (`hooks: [{type, command}]`)."""
    for row in rows:
        given = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        inner = given.get("hooks")
        if not isinstance(inner, list):
            yield _hook(event, cast("object", row), place)
            continue
        for one in cast("list[object]", inner):
            yield _claudes(event, one, given.get("matcher"), place)


def _claudes(event: HookEvent, row: object, matcher: object, place: str) -> Hook | str:
    """One entry in Claude Code's form; what else it says is its own business."""
    if not isinstance(row, dict):
        return "each entry must be an object with a type and a command"
    given = cast("dict[str, object]", row)
    if given.get("type") != "command":
        return f"a hook of type {str(given.get('type'))[:40]} is not run here; only command is"
    known = {name: given[name] for name in ("command", "timeout") if name in given}
    found = _hook(event, {**known, "matcher": None if matcher == "*" else matcher}, place)
    return found if isinstance(found, str) else replace(found, claude=True)


def _hook(event: HookEvent, row: object, place: str) -> Hook | str:
    """A hook as a settings file has it, or what is wrong with it."""
    if not isinstance(row, dict):
        return "each entry must be an object with a command"
    given = cast("dict[str, object]", row)
    command, matcher, seconds = (given.get(k) for k in ("command", "matcher", "timeout"))
    unknown = sorted(set(given) - _MEMBERS)
    if unknown:
        return f"unknown key {unknown[0][:100]}; known are {', '.join(sorted(_MEMBERS))}"
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "command must be a text that is not empty"
    if matcher is not None and not isinstance(matcher, str):
        return "matcher must be a text"
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | None):
        return "timeout must be a number of seconds"
    if seconds is not None and not 0 < seconds <= 86_400:
        return "timeout must lie between 0 and 86,400 seconds"
    try:
        pattern = re.compile(matcher) if matcher else None
    except re.error as error:
        return f"matcher is not a valid regular expression: {error}"
    return Hook(event, command, pattern, seconds, place)


# --- running them


class Hooks:
    """The hooks of one session."""

    def __init__(
        self,
        hooks: Sequence[Hook] = (),
        *,
        session: str = "",
        cwd: str = "",
        seconds: float = 60.0,
        say: Say = say_nothing,
        project: str = "",
        transcript: str = "",
    ) -> None:
        self._hooks = tuple(hooks)
        self._project = project or cwd
        self._transcript = transcript
        self._session = session
        self._cwd = cwd
        self._seconds = seconds
        self._say = say

    def __len__(self) -> int:
        return len(self._hooks)

    async def run(self, event: HookEvent, **told: object) -> HookVerdict:
        """Run all hooks of an event side by side; what they said, in the order of the files."""
        hooks = [h for h in self._hooks if h.event == event and h.fits(told)]
        if not hooks:
            return NOTHING
        known = {"session_id": self._session, "cwd": self._cwd, **told}
        ours = dump({"event": event, **known}).encode()
        path = self._transcript
        theirs = dump({"hook_event_name": event, "transcript_path": path, **known}).encode()
        said: list[HookVerdict] = [NOTHING] * len(hooks)

        async def one(at: int) -> None:
            said[at] = await self._one(hooks[at], theirs if hooks[at].claude else ours)

        async with anyio.create_task_group() as group:
            for at in range(len(hooks)):
                group.start_soon(one, at)
        reasons = [v.reason for v in said if v.blocked]
        context = tuple(c for v in said for c in v.context)
        return HookVerdict(bool(reasons), "\n".join(filter(None, reasons)), context)

    async def _one(self, hook: Hook, given: bytes) -> HookVerdict:
        limit = self._seconds if hook.seconds is None else hook.seconds
        known = {"CLAUDE_PROJECT_DIR": self._project} if hook.claude else {}
        ran = await run_shell_line(hook.command, given, cwd=self._cwd, seconds=limit, known=known)
        if ran.fault:
            return self._failure_verdict(hook, ran.fault)
        if ran.status == BLOCKED:
            return HookVerdict(
                True, _decode_excerpt(ran.errors, MAX_REASON) or "a hook blocked this"
            )
        if ran.status:
            errors = _decode_excerpt(ran.errors, 300)
            return self._failure_verdict(
                hook, f"ended with status {ran.status}. {errors}".rstrip(". ")
            )
        return self._answer(hook, ran.output)

    def _answer(self, hook: Hook, output: bytes) -> HookVerdict:
        text = output.decode("utf-8", "replace").strip()
        if not text:
            return NOTHING
        if _is_plain(text) and (hook.claude or hook.event != "PreToolUse"):
            return HookVerdict(context=(_cut(text, MAX_CONTEXT),))
        value, problems = parse_object(text, hook.command[:80])
        if problems:
            return self._failure_verdict(hook, f"its output is not used: {problems[0].reason}")
        decision, reason = value.get("decision"), value.get("reason")
        added = value.get("additionalContext")
        if hook.claude:
            decision, reason, added = _in_our_words(value)
        if decision not in (None, "block", "allow"):
            return self._failure_verdict(hook, 'decision must be "block" or "allow"')
        context = (_cut(added, MAX_CONTEXT),) if isinstance(added, str) and added.strip() else ()
        said = _cut(reason, MAX_REASON) if isinstance(reason, str) else ""
        return HookVerdict(decision == "block", said, context)

    def _failure_verdict(self, hook: Hook, why: str) -> HookVerdict:
        """A hook without a verdict: one that judges tool calls has not allowed this one."""
        text = f"{hook.event} hook `{hook.command[:80]}` {why}"
        blocks = hook.event == "PreToolUse"
        then = "the call is blocked" if blocks else "the session goes on"
        self._say(Notice("hooks", f"{text}; {then}", "warning"))
        return HookVerdict(True, f"{text}, so the call is not allowed") if blocks else NOTHING


def _is_plain(text: str) -> bool:
    """Whether it is words, and not JSON that may have gone wrong, nor something else."""
    return not text.startswith(("{", "[")) and "\ufffd" not in text and "\0" not in text


def _in_our_words(value: Mapping[str, object]) -> tuple[object, object, object]:
    """Decision, reason and context of an answer in Claude Code's form. To ask the user first is
    more than a hook can have here, so it blocks; what the user allows, they allow by a rule."""
    inner = value.get("hookSpecificOutput")
    own = cast("dict[str, object]", inner) if isinstance(inner, dict) else {}
    added = own.get("additionalContext", value.get("additionalContext"))
    wanted = own.get("permissionDecision", value.get("decision"))
    reason = own.get("permissionDecisionReason", value.get("reason"))
    if value.get("continue") is False:
        return "block", value.get("stopReason") or reason, added
    known = {"deny": "block", "ask": "block", "approve": "allow", "defer": None}
    return (known.get(wanted, wanted) if isinstance(wanted, str) else wanted), reason, added


NO_HOOKS = Hooks()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut at {most:,} characters]"


def _decode_excerpt(data: bytes, most: int) -> str:
    return data[: most * 4].decode("utf-8", "replace").strip()[:most]


@dataclass(frozen=True, slots=True)
class HookRan:
    """How a command ended; `fault` says why its output must not be used."""

    status: int
    output: bytes = b""
    errors: bytes = b""
    fault: str = ""


def _in_shell(line: str, given: bytes, cwd: str, known: Mapping[str, str]) -> Command:
    from reverie.toolbox.process import Command

    environ = {**environment(), **known}
    return Command(["/bin/sh", "-c", line], Path(cwd).absolute(), environ, given)


async def run_shell_line(
    line: str, given: bytes, *, cwd: str, seconds: float, known: Mapping[str, str] = NOTHING_KNOWN
) -> HookRan:
    """Run a line of shell and keep what it says; nothing that it starts is left afterwards."""
    from reverie.toolbox.process import OutputBuffer, run  # due where there is a hook

    out, errors = OutputBuffer(MAX_OUTPUT + 1), OutputBuffer(MAX_OUTPUT + 1)
    try:
        ended = await run(_in_shell(line, given, cwd, known), out, seconds, errors)
    except (OSError, NotFound, ToolFailed) as error:
        return HookRan(-1, fault=f"could not be started: {error}")
    if ended.cause == "output":
        return HookRan(-1, fault=f"printed more than {MAX_OUTPUT:,} bytes and was ended")
    if ended.cause == "time":
        return HookRan(-1, fault=f"took longer than {seconds:g} s and was ended")
    return HookRan(ended.code, bytes(out.data), bytes(errors.data))


def hooks_for(
    session: str,
    project: Project,
    *,
    say: Say = say_nothing,
    policy: Path = POLICY,
    claude: Sequence[SettingsFile] = (),
    transcript: str = "",
) -> Hooks:
    """Return the hooks of a session, none in simple mode; say what was not taken."""
    if project.settings.simple:
        return NO_HOOKS
    root = project.root
    hooks, problems = load_hooks(home=project.home, root=root, policy=policy, claude=claude)
    for problem in problems:
        say(Notice("hooks", str(problem), "warning"))
    return Hooks(
        hooks,
        session=session,
        cwd=str(project.cwd),
        seconds=project.settings.hook_seconds,
        say=say,
        project=str(root),
        transcript=transcript,
    )


def prompt_of(blocks: Sequence[Mapping[str, object]]) -> str:
    """The words of a prompt, for a hook to read."""
    return "\n".join(str(b.get("text", "")) for b in blocks if b.get("type") == "text")
