"""What goes out in place of a request, as far as it is decided: patches on the client's bytes.

Only what stands behind the last of the assistant's words may still be decided; what is first seen
before it was sent already and stays as it is. Deciding is done elsewhere, once; this reads
decisions and says what is still open. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from reverie.layers.tool_results import Result
from reverie.light import dataclass
from reverie.middleware import chain, marks
from reverie.middleware.callers import Caller, Kind
from reverie.middleware.decisions import Decisions
from reverie.middleware.patches import Patch, patched, reminder_patches, result_patches
from reverie.middleware.scanning import Body, ScannedPart
from reverie.transcript.blocks import Block, Json, Object, text_of
from reverie.transcript.file_reads import stays_whole


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read, with who asks and what for."""

    body: Body
    caller: Caller
    kind: Kind
    prompt: str = ""
    folder: str = ""  # the memory's: the project's own, or one of a person's or of a key's
    project: str = ""  # the folder that the client works in, where it is known
    memory: bool = True  # whether anything is told and learned

    @property
    def tenant(self) -> str:
        return self.caller.seed.hex()

    @property
    def thread(self) -> str:
        agent = f"/{self.caller.agent}" if self.caller.agent else ""
        return f"{self.main}{agent}"

    @property
    def main(self) -> str:
        """The thread of the session itself, also where an agent asks. Conversations without an
        id are one thread for each project: two projects never share what they were told."""
        return f"{self.tenant[:12]}:{self.caller.session or f'@{self.folder}'}"

    def chains(self) -> Iterator[str]:
        """The chains that the assistant has spoken in, the newest first."""
        return (p.chain.hex() for p in reversed(self.body.parts) if p.role == "assistant")

    @property
    def prompted(self) -> ScannedPart | None:
        """The block that a reminder would follow now."""
        if not self.prompt:
            return None
        return next(part for part in reversed(self.body.parts) if part.role == "user")


@dataclass(frozen=True, slots=True)
class OutgoingPlan:
    """What is decided of a request, and what is not yet."""

    decided: tuple[tuple[int, str, str], ...]  # by part: what stands in its place, and behind it
    stored: int
    reminded: int
    saved: int  # characters that do not go out
    open_results: tuple[ScannedPart, ...]  # over their limit, and nobody has decided
    sent_results: tuple[ScannedPart, ...]  # the same, but they were, or are now, sent as they are
    unruled: tuple[ScannedPart, ...]  # results of calls that no rules were looked up for yet
    reminder: str | None  # of the prompt; None: not decided
    inherited: tuple[tuple[str, str], ...]  # chains whose reminders came from the parent


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """When a result is too large to stay, and which ones stay whatever they measure."""

    characters: int
    folder: str = ""  # where stored results lie: what is read from there stays
    reader: str = ""  # the tool by which the client reads them; "" where it has none
    whole: int = 0  # bytes of a file, read by its path, that stay

    def keeps(self, given: str) -> bool:
        return bool(self.folder) and self.folder in given.replace("\\/", "/")


def plan(asked: Asked, decisions: Decisions, limits: ResultLimits) -> OutgoingPlan:
    """Everything that decisions say about a request."""
    body, thread = asked.body, asked.thread
    parent = decisions.parent(thread, asked.chains(), asked.folder)
    fresh = body.answered
    decided: list[tuple[int, str, str]] = []
    open_: list[ScannedPart] = []
    sent: list[ScannedPart] = []
    unruled: list[ScannedPart] = []
    inherited: list[tuple[str, str]] = []
    stored = reminded = saved = 0
    now = asked.prompted
    reminder: str | None = None
    for at, part in enumerate(body.parts):
        if part.kind == "tool_result" and part.inner != (0, 0):
            key = (asked.tenant, part.call, part.key)
            text, rule = decisions.results.get(key), decisions.rules.get(key)
            rule = rule if asked.memory else ""
            if text or rule:
                decided.append((at, text or "", rule or ""))
            if rule is None and at >= fresh:
                unruled.append(part)
            if text:
                stored += 1
                saved += part.inner[1] - part.inner[0] - len(text)
            elif text is None and (large := _large(body, part, limits)):
                stays = at < fresh or stays_whole(*body.called(part), large, limits.whole)
                (sent if stays else open_).append(part)
        elif part.kind == "text" and part.role == "user":
            text = decisions.reminder(thread, part.chain.hex(), parent if at < fresh else "")
            text = text if asked.memory else ""
            if part is now:
                reminder = text
            if text is not None and parent != thread:
                inherited += _inherited(decisions, thread, part, text)
            if text:
                decided.append((at, "", text))
                reminded += 1
    return OutgoingPlan(
        tuple(decided),
        stored,
        reminded,
        saved,
        tuple(open_),
        tuple(sent),
        tuple(unruled),
        reminder,
        tuple(inherited),
    )


def _inherited(
    decisions: Decisions, thread: str, part: ScannedPart, text: str
) -> list[tuple[str, str]]:
    own = decisions.reminders.get(part.chain.hex(), {})
    return [] if thread in own else [(part.chain.hex(), text)]


def _large(body: Body, part: ScannedPart, limits: ResultLimits) -> str:
    """The text of a result that is over its limit; "" of any other."""
    if not limits.reader or part.inner[1] - part.inner[0] <= limits.characters:
        return ""
    if limits.keeps(body.talk.tools.get(part.call, ("", ""))[1]):
        return ""
    content = body.content(part)
    if body.form != "messages" and not _is_text(content):
        return ""
    text = text_of(content)
    return text if len(text) > limits.characters else ""


def _is_text(content: object) -> bool:
    """Whether a result is nothing but text."""
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return all(chain.as_value(one).get("type") in chain.TEXTS for one in parts)


def result_of(body: Body, part: ScannedPart) -> Result:
    """A result as layer 1 takes it."""
    content = cast("Json", body.content(part))
    value: Object = {"type": "tool_result", "tool_use_id": part.call, "content": content}
    raw = body.text[body.base + part.inner[0] : body.base + part.inner[1]]
    tool = body.talk.tools.get(part.call, ("", ""))[0]
    named = f'{{"type":"tool_result","tool_use_id":"","content":{raw}}}'
    return Result(part.call, tool, Block(named, value), text_of(content))


def written(asked: Asked, made: OutgoingPlan, known: int) -> str | None:
    """The text that goes out; None where it is the client's own."""
    body = asked.body
    pieces: list[Patch] = []
    touched: set[int] = set()  # where a mark would have to be on what is put there
    for at, text, behind in made.decided:
        part = body.parts[at]
        if part.kind == "tool_result":
            pieces += result_patches(body, part, text, behind)
        else:
            pieces += reminder_patches(body, part, behind)
            touched.add(part.start)
    inside, outside = marks.spare_marks(body, known, frozenset(touched))
    if not pieces and not inside and not outside:
        return None
    return patched(body, [*pieces, *inside], outside)
