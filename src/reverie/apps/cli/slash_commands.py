"""Slash commands, `/context` included.

Slash commands: one registry, to which every part of the program adds its own.

A command is a name, a line of help and a function of the chat and the text behind the
name. It runs between two turns, never during one. What it has to say it says through the
chat; an error of ours is shown and the conversation goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from reverie.apps.cli.controller import ChatController
from reverie.apps.tui.footer import COLLAPSE, COMPACTION
from reverie.errors import InvalidInput
from reverie.layers.microcompaction import snip_range as history_snip
from reverie.memory.values import fold_case, list_memories, search_memories
from reverie.session.library import find_session
from reverie.session.report import tokens_until_collapse
from reverie.settings.schema import nearest
from reverie.text.format import age, plural
from reverie.text.safety import line, reveal
from reverie.transcript.messages import Item
from reverie.transcript.records import Entry, TurnEnded, UserMessage
from reverie.transcript.view import View, head_blocks

if TYPE_CHECKING:
    from reverie.session.session import Session

LISTED = 10
SHORT = 8  # signs of a message's id, where they tell it from the others


class ExitChat(Exception):
    """The conversation is to end."""


class SwitchSession(Exception):
    """Another session is to go on; an empty id begins a new one."""

    def __init__(self, session: str = "") -> None:
        super().__init__(session)
        self.session = session


class CommandContext(Protocol):
    """What a command works with."""

    @property
    def desk(self) -> ChatController: ...
    @property
    def commands(self) -> SlashCommands: ...
    def say(self, text: str, style: str = "") -> None: ...
    def dialog(self, name: str) -> bool:
        """Open a dialog; False where only lines can be shown."""
        ...

    @property
    def width(self) -> int:
        """Columns that a line may have."""
        ...


RunSlashCommand: TypeAlias = "Callable[[CommandContext, str], None]"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`/name`, and what it does."""

    name: str
    about: str
    run: RunSlashCommand
    usage: str = ""


_ALSO = {"exit": "quit"}
"""Names by which people know a command from elsewhere."""


class SlashCommands:
    """Commands by name, in the order they were added."""

    def __init__(self, commands: tuple[SlashCommand, ...] = ()) -> None:
        self._by_name: dict[str, SlashCommand] = {}
        for command in commands:
            self.add(command)

    def add(self, command: SlashCommand) -> None:
        if command.name in self._by_name:
            raise InvalidInput("a command of this name is already there", where=command.name)
        self._by_name[command.name] = command

    def __iter__(self) -> Iterator[SlashCommand]:
        return iter(self._by_name.values())

    def is_command(self, text: str) -> bool:
        """Whether a line is meant as a command: a path that begins it is not."""
        first = text.split(maxsplit=1)[0] if text.strip() else ""
        return first.startswith("/") and len(first) > 1 and "/" not in first[1:]

    def run(self, chat: CommandContext, text: str) -> None:
        """Run the command that a line names; InvalidInput where there is none."""
        name, _, rest = text.strip()[1:].partition(" ")
        command = self._by_name.get(_ALSO.get(name, name))
        if command is None:
            hint = nearest(name, self._by_name).removeprefix("; ")
            raise InvalidInput(
                "there is no such command", where=f"/{name[:40]}", do=hint or "/help lists them"
            )
        command.run(chat, rest.strip())


def help_(chat: CommandContext, rest: str) -> None:
    """Every command in a line; with a name, what that one takes and does."""
    wanted = _ALSO.get(rest.removeprefix("/"), rest.removeprefix("/"))
    for command in chat.commands:
        if not wanted:
            chat.say(f"/{command.name:<9} {command.about}")
        elif command.name == wanted:
            chat.say(f"/{command.name} {command.usage}".rstrip())
            chat.say(f"  {command.about}")
            return
    if wanted:
        raise InvalidInput(
            "there is no such command", where=f"/{wanted[:40]}", do="/help lists them"
        )
    chat.say("/help NAME tells more; enter sends, alt-enter breaks the line, ctrl-c cancels", "dim")


# --- sessions


def clear(chat: CommandContext, rest: str) -> None:
    del rest
    chat.say(f"The session so far stays: /resume {chat.desk.agent.session.id}", "dim")
    raise SwitchSession


def resume(chat: CommandContext, rest: str) -> None:
    library = chat.desk.agent.session.library
    if rest:
        raise SwitchSession(find_session(library, rest))
    now = time.time()
    files = library.sessions()
    for file in files[:LISTED]:
        found = library.summary(file)
        told = f"{file.id}  {age(now - found.at):>8}  {plural(found.turns, 'turn'):>9}"
        chat.say(f"{told}  {line(found.title, 60)}")
    chat.say(f"{plural(len(files), 'session')}; /resume ID goes on with one", "dim")


def last_turn(view: View) -> Entry | None:
    """The message that began the newest turn still in the conversation."""
    there = {item.id for item in view.items}
    found: Entry | None = None
    fresh = True
    for entry in view.entries:
        record = entry.record
        if isinstance(record, TurnEnded):
            fresh = True
        elif isinstance(record, UserMessage) and record.origin == "user" and entry.id in there:
            found = entry if fresh else found
            fresh = False
    return found


def undo(chat: CommandContext, rest: str) -> None:
    del rest
    session = chat.desk.agent.session
    began = last_turn(session.view)
    if began is None:
        raise InvalidInput("there is no turn to undo")
    if not began.parent:
        raise InvalidInput("this is the first turn", do="/clear starts afresh")
    chat.desk.call(partial(session.rewind, began.parent))
    words = began.record.blocks[0].text if isinstance(began.record, UserMessage) else ""
    chat.say(f"Taken back: {line(words, 100)}")
    chat.say("Files that were changed stay as they are.", "dim")


def snip(chat: CommandContext, rest: str) -> None:
    """Without numbers, the messages there are; with them, those go from the context."""
    session = chat.desk.agent.session
    items = [i for i in session.view.items if i.kind != "head"]
    numbers = rest.replace("-", " ").split()
    if not numbers:
        for number, item in enumerate(items, 1):
            words = line(" ".join(p.block.text for p in item.pieces), 70)
            chat.say(f"{number:>4}  {item.role:<9} {item.tokens:>7,} tokens  {words}")
        chat.say(
            "/snip FIRST [LAST] takes them out of the context; the transcript keeps them", "dim"
        )
        return
    if not all(n.isdecimal() and 0 < int(n) <= len(items) for n in numbers) or len(numbers) > 2:
        raise InvalidInput("name one message, or a first and a last", do="/snip lists them")
    first, last = items[int(numbers[0]) - 1].id, items[int(numbers[-1]) - 1].id
    record = history_snip(session.view, first, last, session.world)
    before = session.view.tokens
    chat.desk.call(partial(session.append, record))
    chat.say(f"Snipped {record.why}; about {before - session.view.tokens:,} tokens less")


def compact(chat: CommandContext, rest: str) -> None:
    """The whole conversation, or its part from or up to a message, becomes a summary."""
    session = chat.desk.agent.session
    side, pivot, words = parse_pivot(rest)
    if side:
        found = find_items(session.view, pivot)
        if len(found) != 1:
            _offer(chat, side, found or user_items(session.view))
            return
        pivot = found[0].id
    tokens = f"{session.view.tokens:,} tokens"
    chat.say(f"Compacting {tokens}; Ctrl-C leaves everything as it is…", "dim")
    part: dict[str, Any] = {"from_": pivot} if side == "--from" else {"up_to": pivot}
    part = part if side else {"must_gain": True}
    done = chat.desk.call(partial(session.summarize, words, **part))
    chat.say(f"Compacted: {done.tokens_before:,} tokens are {done.tokens_after:,} now")
    if done.fidelity is not None:
        chat.say(f"Fidelity {done.fidelity:.0%}: kept in the context, or readable by reference")
    for missing in done.missing[:LISTED]:
        chat.say(f"  missing: {line(missing, 100)}", "yellow")
    if len(done.missing) > LISTED:
        chat.say(f"  and {len(done.missing) - LISTED:,} more", "yellow")


def parse_pivot(rest: str) -> tuple[str, str, str]:
    """Which side of which message, and the words behind; all but the words may be empty."""
    for side in ("--from", "--up-to"):
        flag, _, more = rest.partition(" ")
        if flag.partition("=")[0] == side:
            given = flag.partition("=")[2]
            ident, _, words = (given, "", more) if given else more.strip().partition(" ")
            return side, ident.strip(), words.strip()
    return "", "", rest


def user_items(view: View) -> list[Item]:
    """What the user said and the context still has, oldest first."""
    ours = (entry for i in view.items if (entry := view.entries.find(i.id)))
    theirs = {e.id for e in ours if isinstance(e.record, UserMessage) and e.record.origin == "user"}
    return [item for item in view.items if item.id in theirs and item.kind == "message"]


def find_items(view: View, ident: str) -> list[Item]:
    """The messages whose id begins so; one that is named whole is the only one."""
    found = [i for i in view.items if i.kind != "head" and ident and i.id.startswith(ident)]
    return [i for i in found if i.id == ident] or found


def _offer(chat: CommandContext, side: str, items: list[Item]) -> None:
    shown = items[-LISTED * 2 :]
    short = max(
        [SHORT, *(_prefix_length(a.id, b.id) + 1 for a in shown for b in shown if a is not b)]
    )
    for item in shown:
        chat.say(f"  {item.id[:short]}  {line(' '.join(p.block.text for p in item.pieces), 70)}")
    what = "from a message on" if side == "--from" else "what comes before a message"
    chat.say(f"/compact {side} ID compacts {what}; these are yours", "dim")


def _prefix_length(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


# --- the rest


def tasks(chat: CommandContext, rest: str) -> None:
    if not rest and chat.dialog("tasks"):
        return
    agent = chat.desk.agent
    verb, _, name = rest.partition(" ")
    if verb == "kill":
        if not chat.desk.call(partial(agent.kill, name.strip())):
            raise InvalidInput(
                "no such task is running", where=name.strip(), do="/tasks lists them"
            )
        chat.say(f"Ended {name.strip()}")
        return
    at_work = {member.name: member for member in agent.at_work}
    for running in agent.tasks:
        chat.say(f"  {at_work[running].line if running in at_work else running}")
    for member in agent.over[-LISTED:]:
        chat.say(f"  {member.line}", "dim")
    chat.say(f"{plural(len(agent.tasks), 'task')} in the background", "dim")


def memory(chat: CommandContext, rest: str) -> None:
    """Browse the memory; with words, the memories that have them."""
    if not rest and chat.dialog("memory"):
        return
    memories = chat.desk.agent.memories
    if memories is None:
        raise InvalidInput("there is no long-term memory here")
    rows = list_memories(memories)
    if rest:
        words = fold_case(rest).split()
        found = {one.file for one in search_memories(memories, words)}
        rows = [row for row in rows if row.file in found]
    for row in rows[:LISTED]:
        chat.say(f"{row.file}  {line(reveal(row.description or row.name), 80)}")
    waiting = len(memories.review.items())
    told = plural(len(rows), "memory", "memories")
    chat.say(f"{told}, {waiting} to review; reverie memory shows and edits them", "dim")


def calls(chat: CommandContext, rest: str) -> None:
    del rest
    if not chat.dialog("calls"):
        chat.say("reverie sessions show --full prints every call and its result", "dim")


def dream(chat: CommandContext, rest: str) -> None:
    """Tidy the memory now, in the background."""
    del rest
    session = chat.desk.agent.session
    chat.say(chat.desk.call(partial(session.dreams.start, session)))


def skill(chat: CommandContext, rest: str) -> None:
    chat.desk.call(partial(chat.desk.agent.attach_skill, rest))
    chat.say(f"The skill {rest} joins your next message.")


def leave(chat: CommandContext, rest: str) -> None:
    del chat, rest
    raise ExitChat


def standard() -> SlashCommands:
    """The commands every chat has."""
    return SlashCommands(
        (
            SlashCommand("help", "Lists the commands", help_, "[NAME]"),
            SlashCommand("context", "Shows what fills the context", context),
            SlashCommand("clear", "Starts a new session", clear),
            SlashCommand("resume", "Lists sessions, or goes on with one", resume, "[ID]"),
            SlashCommand("undo", "Takes the last turn back", undo),
            SlashCommand("snip", "Takes messages out of the context", snip, "[FIRST [LAST]]"),
            SlashCommand(
                "compact",
                "Puts a summary in the place of the conversation",
                compact,
                "[TEXT | --from ID | --up-to ID]",
            ),
            SlashCommand("memory", "Browses the memory, or searches it", memory, "[WORDS]"),
            SlashCommand("calls", "Opens tool calls and what they gave", calls),
            SlashCommand("dream", "Tidies the memory, in the background", dream),
            SlashCommand(
                "tasks",
                "Lists agents and what runs in the background, or ends it",
                tasks,
                "[kill ID]",
            ),
            SlashCommand("skill", "Attaches a skill of the project", skill, "NAME"),
            SlashCommand("quit", "Leaves; /exit does too", leave),
        )
    )


# --- `/context`: what stands in the window, by kind.


NARROW = 40  # columns under which names and figures stand alone


def filling(view: View) -> list[tuple[str, int]]:
    """What the context holds, in rough tokens by kind."""
    tokens: dict[str, int] = {}
    head = view.head
    if head is not None:
        tokens["system"] = sum(b.tokens for b in head_blocks(head.system))
        tokens["tools"] = view.head_tokens - tokens["system"]
    for item in view.items:
        for piece in item.pieces:
            name = {"head": "surroundings", "attached": "attachments"}.get(item.kind, item.role)
            if piece.block.type == "tool_result":
                name = "tool results"
            tokens[name] = tokens.get(name, 0) + piece.block.tokens
    return [(name, count) for name, count in tokens.items() if count]


def room_left(session: Session) -> tuple[int, str]:
    """How many tokens fit until something is made smaller, and what that will be."""
    world, view = session.world, session.view
    left = world.settings.left_until_compact(world.window, view.tokens)
    if world.collapses:
        expected = tokens_until_collapse(view, world)
        return (expected, COLLAPSE) if expected < left else (left, COMPACTION)
    return left, COMPACTION


def context(chat: CommandContext, rest: str) -> None:
    """What stands in the window by kind; letters in the bar, so it reads without colour."""
    del rest
    session = chat.desk.agent.session
    window, used = session.world.window, session.view.tokens
    left, next_ = room_left(session)
    parts = filling(session.view)
    whole = sum(count for _, count in parts) or 1
    room = max(10, chat.width - 4)
    chat.say(f"  {_bar(parts, used / whole / window if window else 0.0, room)}")
    told = f"{used:,} of {window:,} tokens, {used / window if window else 0:.0%}"
    until = f"{left:,} left until {next_}"
    chat.say(f"  {told}{until:>{max(len(until) + 2, room - len(told))}}")
    chat.say("")
    most = max([1, *(count for _, count in parts)])
    for name, count in parts:
        told = f"{_LETTERS.get(name, name[0])}  {name:<14} {count:>9,}"
        bar = "█" * max(1, round(count / most * (room - 30)))
        narrow = f"{_LETTERS.get(name, name[0])} {name[: room - 10]} {count:,}"
        chat.say(f"  {told}  {bar}" if room >= NARROW else f"  {narrow}")
    chat.say("")
    if used != whole:
        chat.say("  Parts are estimates; the sum is what the provider counts.", "dim")
    chat.say("  /compact makes room, /snip takes messages out", "dim")


_LETTERS = {
    "system": "s",
    "tools": "t",
    "surroundings": "e",
    "attachments": "a",
    "user": "u",
    "assistant": "m",
    "tool results": "r",
}


def _bar(parts: list[tuple[str, int]], scale: float, room: int) -> str:
    """Each part's letter as often as its share of the window, then dots for what is free."""
    bar, end = "", 0.0
    for name, count in parts:
        end += count * scale * room
        bar += _LETTERS.get(name, name[0]) * max(0, round(end) - len(bar))
    bar = bar or "".join(_LETTERS.get(name, name[0]) for name, _ in parts[:1])
    return bar[:room] + "·" * max(0, room - len(bar))
