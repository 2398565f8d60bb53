"""Whose request it is, and who speaks in it.

Who asks, and what for: the thread a request belongs to, its kind, its project.

A session's id is not a thread: titles, the permission classifier, sub-agents and the main line
share it. Kinds are told by shape alone, as clients were seen to send them; what is not known is
`unknown` and passes as it is. The working folder is taken from what a client itself writes at the
head of a conversation, never from what a user or a tool says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

from reverie.interception import decisions
from reverie.interception.scan import RequestBody, given_value
from reverie.light import dataclass
from reverie.transcript.blocks import Block, dump, text_of
from reverie.transcript.records import UserMessage, by_speaker

Kind: TypeAlias = Literal["main", "agent", "compaction", "side"]
Reading: TypeAlias = Literal["granted", "unknown", "refused"]
SESSION = ("x-claude-code-session-id", "x-session-id", "session-id", "session_id")
AGENT = "x-claude-code-agent-id"
CLAUDE_CODE = "x-claude-code-session-id"
CODEX = ("originator", "codex")
"""The header by which Codex names itself, and how its value begins. It reads everywhere."""
ASKING = (CLAUDE_CODE, "x-session-id")
"""Headers of Claude Code and opencode, which ask before they read outside their project."""
PROJECT = "x-reverie-project"
USER = "x-reverie-user"
INSIDE = "x-reverie-inside"  # a request of our own background work
SWITCH = "x-reverie"
_FOLDER = re.compile(
    r"(?:^|[\s>])(?:Primary working directory|Working directory|Current working directory|"
    r"(?:I'm )?currently working in the directory):[ \t]*(?P<line>/[^\n<]*)"
    r"|<cwd>[ \t]*(?P<tag>/[^<\n]*)</cwd>",
    re.IGNORECASE,
)
_LOOKED_AT = 64 * 1024
_ALONE = re.compile(r"claude-cli/\S+ \([^)]*\bsdk-|codex_exec/")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request this is."""

    seed: bytes  # of the credential
    session: str = ""
    agent: str = ""

    @property
    def thread(self) -> str:
        """What decisions are kept under: the session and, where there is one, the agent."""
        return f"{self.session}/{self.agent}" if self.agent else self.session


def caller_of(headers: Mapping[str, str], scope: str = "") -> Caller:
    """Who asks, as the headers tell; `scope` parts callers that share a credential."""
    session = next((headers[name] for name in SESSION if headers.get(name)), "")
    seed = decisions.chain_seed(scope + decisions.credential(headers))
    return Caller(seed, session[:200], headers.get(AGENT, "")[:200])


def is_attended(headers: Mapping[str, str]) -> bool:
    """Whether a person may be there: not in `claude -p`, its SDK or `codex exec`."""
    return _ALONE.match(headers.get("user-agent", "")) is None


def kind_of(body: RequestBody, headers: Mapping[str, str]) -> Kind:
    """What a request is for."""
    if any(headers.get(name) for name in SESSION) and not body.members.get("tools"):
        return "side"
    if CLAUDE_CODE in headers and _is_compaction(body):
        return "compaction"
    return "agent" if headers.get(AGENT) else "main"


def _is_compaction(body: RequestBody) -> bool:
    """The last mark is on the second-to-last message, those of the system not counted."""
    spoken = [part for part in body.parts if part.role != "system"]
    marked = [part.message for part in spoken if part.marks]
    messages = list(dict.fromkeys(part.message for part in spoken))
    return len(messages) > 1 and bool(marked) and max(marked) == messages[-2]


def prompt_of(body: RequestBody, kind: Kind) -> str:
    """What the user says now; "" where this is no prompt."""
    spoken = [part for part in body.parts[body.answered :] if part.role == "user"]
    if kind != "main" or not spoken or spoken[-1].kind != "text":
        return ""
    text = text_of(body.value(spoken[-1])).strip()
    return "" if is_notice(text) else text


# --- the person


def person_of(body: RequestBody, headers: Mapping[str, str], *, folder: bool) -> str:
    """Who asks behind a key, by a header, else as a body names them, without a client's session; ""
    where nobody is named. Claude Code names the login of the machine's own user: where its
    `folder` is known, that is nobody else."""
    about = decisions.as_value(body.members.get("metadata")).get("user_id")
    members = (body.members.get("safety_identifier"), body.members.get("user"), about)
    given = (headers.get(USER), *members)
    texts = (str(one) for one in given if isinstance(one, (str, int)))
    person, is_login = _sessionless(next((one for one in texts if one.strip()), ""))
    return "" if is_login and folder else person


def _sessionless(text: str) -> tuple[str, bool]:
    """An id without the session in it; and whether it is of the form of Claude Code's."""
    login = text.rpartition("_session_")[0]
    if login.startswith("user_") and "_account_" in login:
        return "" if login == "user__account_" else login, True
    value = decisions.as_value(given_value(text))
    if "session_id" not in value:
        return text, False
    rest = {name: value[name] for name in sorted(value) if name != "session_id" and value[name]}
    return dump(rest) if rest else "", "device_id" in rest or "account_uuid" in rest


# --- the project


def folder_of(body: RequestBody, headers: Mapping[str, str]) -> str:
    """The folder a client works in: by its header, else as its own preamble says; or ""."""
    given = headers.get(PROJECT, "").strip()
    if given:
        return given
    for text in _preamble(body):
        found = _FOLDER.search(text[:_LOOKED_AT])
        if found:
            return (found["line"] or found["tag"]).strip().rstrip("/") or "/"
    return ""


def _preamble(body: RequestBody) -> Iterator[str]:
    """What the client itself writes: the system prompt, and reminders before the first words."""
    for name in ("system", "instructions"):
        yield text_of(body.members.get(name))
    for part in body.parts:
        if part.role == "assistant":
            return
        if part.role == "system":
            yield text_of(body.value(part))
        elif part.kind == "text":
            text = text_of(body.value(part))
            if text.lstrip().startswith("<"):
                yield text


def reading_of(headers: Mapping[str, str], client: str) -> Reading:
    """Whether a client may read files in our home: an installed one was granted it, or needs no
    grant. By URL alone, one that asks its user first may not."""
    if client or headers.get(CODEX[0], "").startswith(CODEX[1]):
        return "granted"
    return "refused" if any(headers.get(name) for name in ASKING) else "unknown"


def tool_names(body: RequestBody) -> tuple[str, ...]:
    """The tools that a request offers, by name."""
    found = body.members.get("tools")
    out: list[str] = []
    for one in cast("list[object]", found) if isinstance(found, list) else []:
        tool = decisions.as_value(one)
        about = decisions.as_value(tool.get("function")) or tool
        out.append(str(about.get("name") or ""))
    return tuple(out)


READERS = ("read", "readfile", "viewfile", "openfile", "cat")
SHELLS = ("bash", "shell", "execcommand", "runshellcommand", "runcommand", "terminal", "localshell")


def reader_of(body: RequestBody) -> str:
    """The tool by which a client reads a file; "" where it has none."""
    plain = {re.sub(r"[^a-z]", "", name.lower()): name for name in reversed(tool_names(body))}
    return next((plain[name] for name in (*READERS, *SHELLS) if name in plain), "")


# --- Who speaks in a message of a client's: the user, a tool, or the client itself.
#
# Clients write words of their own into the user's message: reminders, traces of commands, notices.
# They stay where they are, and count as nobody's wish: nothing is learned from them, and nothing
# is recalled to them. Pure.


_NOTICE = re.compile(
    r"\s*(?:<[a-z]+(?:[-_][a-z]+)+>"  # what clients put around words of their own
    r"|\[Request interrupted|# AGENTS\.md instructions\b)"
)


def is_notice(text: str) -> bool:
    """Whether a text is the client's own, by how it begins."""
    return bool(_NOTICE.match(text))


def messages_of(blocks: Iterable[tuple[Block, bool]]) -> list[UserMessage]:
    """A message as one for each who speaks in it, in its order; with each block whether a tool
    gave it. What is no text is whose the words before it are."""
    spoken: list[tuple[Block, str]] = []
    who = "user"
    for block, given in blocks:
        if given:
            who = "tool"
        elif block.type == "text":
            who = "client" if is_notice(block.get("text")) else "user"
        spoken.append((block, who))
    return by_speaker(spoken)
