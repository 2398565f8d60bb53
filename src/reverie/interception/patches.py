"""Patches on the client's bytes, cache marks, whether a request continues.

Patches on a client's own bytes: what goes out is its text with some places written over.

A patch names its place in the list of messages. Nothing else of the body is touched: key order,
numbers, spaces and unknown members go out as they came. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from reverie.interception import decisions as chain
from reverie.interception.decisions import Decisions
from reverie.interception.identity import Caller, Kind, Reading
from reverie.interception.scan import RequestBody, ScannedPart
from reverie.layers.tool_results import PendingResult
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, dump, text_of
from reverie.transcript.messages import stays_whole

EPHEMERAL = '{"type":"ephemeral"}'
_TEXT = {"messages": "text", "chat": "text", "responses": "input_text"}


@dataclass(frozen=True, slots=True)
class Patch:
    """A piece of the list that is written over; start and end alike: something is put in."""

    start: int
    end: int
    text: str


def apply_patches(
    body: RequestBody, patches: Iterable[Patch], outside: Iterable[Patch] = ()
) -> str:
    """The body's text with patches on its list, and others whose places count from its start."""
    moved = [Patch(body.base + p.start, body.base + p.end, p.text) for p in patches]
    out: list[str] = []
    at = 0
    for one in sorted([*moved, *outside], key=lambda p: (p.start, p.end)):
        out += (body.text[at : one.start], one.text)
        at = one.end
    out.append(body.text[at:])
    return "".join(out)


def result_patches(body: RequestBody, part: ScannedPart, content: str, added: str) -> list[Patch]:
    """Another content for a result, a JSON text, or "" for its own; and words behind it."""
    start, end = part.inner
    if content and not added:
        return [Patch(start, end, content)]
    if content:
        return [Patch(start, end, f"{content[:-1]}{_more(content, added, body)}{content[-1]}")]
    own = body.text[body.base + start : body.base + end] if added else ""
    more = _more(own, added, body)
    return [Patch(end - 1, end - 1, more)] if more else []


def _more(content: str, words: str, body: RequestBody) -> str:
    """What goes before the last sign of a content, so that words stand behind it; "" where it
    is neither a text nor a list."""
    if not words or content[0] not in '"[':
        return ""
    if content[0] == '"':
        return dump(f"\n\n{words}")[1:-1]
    comma = "," if content[1:-1].strip() else ""
    return f'{comma}{{"type":"{_TEXT[body.form]}","text":{dump(words)}}}'


def reminder_patches(body: RequestBody, part: ScannedPart, text: str) -> list[Patch]:
    """A text behind a block. A mark on the block goes along to it."""
    if part.bare and body.form != "messages":
        return [Patch(part.end - 1, part.end - 1, dump(f"\n\n{text}")[1:-1])]
    block = f'{{"type":"{_TEXT[body.form]}","text":{dump(text)}'
    if part.bare:
        words = f'[{{"type":"text","text":{body.raw(part)}}},{block}}}]'
        return [Patch(part.start, part.end, words)]
    if part.mark == (0, 0):
        return [Patch(part.end, part.end, f",{block}}}")]
    mark = mark_of(body, part)
    start, end = part.mark
    return [Patch(start, end, ""), Patch(part.end, part.end, f',{block},"{chain.MARK}":{mark}}}')]


def mark_of(body: RequestBody, part: ScannedPart) -> str:
    """The cache mark on a block, as the client wrote it."""
    return dump(chain.as_value(body.value(part)).get(chain.MARK))


def mark_patch(body: RequestBody, part: ScannedPart, mark: str) -> Patch:
    """A cache mark on a block that has none."""
    if part.bare:
        words = f'[{{"type":"text","text":{body.raw(part)},"{chain.MARK}":{mark}}}]'
        return Patch(part.start, part.end, words)
    return Patch(part.end - 1, part.end - 1, f',"{chain.MARK}":{mark}')


# --- Cache marks: the client's stay where they are; spare ones are used where they pay for sure.
#
# Never more than four, the one at the top counted. In this order: the last block of a round of
# results that nothing marks; a bridge on the last block that is known from before, where so many
# new ones follow that the provider would not look back far enough; the last tool. No mark is added
# to a history of which nothing is known, nor to one that is not only added to: what is written
# there would never be read. Pure.


MOST_MARKS = 4
LONG = '{"type":"ephemeral","ttl":"1h"}'
BRIDGE = 19
"""Blocks behind a known one from which on a bridge is needed."""
_UNMARKABLE = ("thinking", "redacted_thinking")


def spare_marks(
    body: RequestBody, known: int, touched: frozenset[int]
) -> tuple[list[Patch], list[Patch]]:
    """Marks to add: to the list, and to the rest of the body. `known` is how many parts the
    thread's last request had and this one begins with; `touched` are starts of bare texts that
    are written over anyway."""
    if body.form != "messages" or chain.MARK in body.members:
        return [], []
    spare = MOST_MARKS - body.marks
    inside: list[Patch] = []
    outside: list[Patch] = []
    last = _last(body)
    if (
        spare > 0
        and known
        and last is not None
        and _unmarked_round(body)
        and last.start not in touched
    ):
        inside.append(mark_patch(body, last, _later_mark(body)))
        spare -= 1
    bridge = _bridge(body, known)
    if spare > 0 and bridge is not None and bridge.start not in touched:
        inside.append(mark_patch(body, bridge, _later_mark(body)))
        spare -= 1
    if spare > 0 and body.marks:
        outside += _on_last_tool(body)
    return inside, outside


def _last(body: RequestBody) -> ScannedPart | None:
    part = body.parts[-1] if body.parts else None
    return None if part is None or part.role != "user" or part.kind in _UNMARKABLE else part


def _unmarked_round(body: RequestBody) -> bool:
    """Whether results stand at the end and no mark is among what is new."""
    new = body.parts[body.answered :]
    return (
        bool(new)
        and new[-1].kind == "tool_result"
        and not any(part.marks for part in new)
        and bool(body.members.get("tools"))
    )


def _bridge(body: RequestBody, known: int) -> ScannedPart | None:
    """The last known block, where too many lie behind it."""
    parts = body.parts
    marked = any(part.marks for part in parts[known:])
    if not known or len(parts) - known < BRIDGE or not marked:
        return None
    for part in reversed(parts[:known]):
        if part.marks:
            return None
        plain = part.kind not in _UNMARKABLE and part.end > part.start
        if plain and len(parts) and (part.kind != "text" or _has_words(body, part)):
            return part
    return None


def _has_words(body: RequestBody, part: ScannedPart) -> bool:
    value = body.value(part)
    text = value if isinstance(value, str) else chain.as_value(value).get("text")
    return isinstance(text, str) and bool(text.strip())


def _on_last_tool(body: RequestBody) -> list[Patch]:
    tools = body.members.get("tools")
    if not isinstance(tools, list) or not tools:
        return []
    found = cast("list[Any]", tools)
    last = chain.as_value(found[-1])
    if (
        any(chain.MARK in chain.as_value(one) for one in found)
        or not last
        or last.get("defer_loading")
    ):
        return []
    start, end = body.places["tools"]
    brace = body.text.rfind("}", start, end)
    return [Patch(brace, brace, f',"{chain.MARK}":{_first_mark(body)}')]


def _lifetimes(body: RequestBody) -> list[Any]:
    """How long the client's own marks live, in their order; the first stand first."""
    system = body.members.get("system")
    head = cast("list[Any]", system) if isinstance(system, list) else []
    found = [chain.as_value(one).get(chain.MARK) for one in head]
    found += [chain.as_value(body.value(p)).get(chain.MARK) for p in body.parts if p.mark != (0, 0)]
    return [chain.as_value(one).get("ttl") for one in found if one is not None]


def _first_mark(body: RequestBody) -> str:
    """A mark before all others: longer lifetimes must come first."""
    return LONG if "1h" in _lifetimes(body) else EPHEMERAL


def _later_mark(body: RequestBody) -> str:
    """A mark in the list, as long-lived as the client's last."""
    return LONG if _lifetimes(body)[-1:] == ["1h"] else EPHEMERAL


# --- What goes out in place of a request, as far as it is decided: patches on the client's bytes.
#
# Only what stands behind the last of the assistant's words may still be decided; what is first
# seen before it was sent already and stays as it is. Deciding is done elsewhere, once; this reads
# decisions and says what is still open. Pure.


@dataclass(frozen=True, slots=True)
class InterceptedRequest:
    """A request, read, with who asks and what for."""

    body: RequestBody
    caller: Caller
    kind: Kind
    prompt: str = ""
    folder: str = ""  # the memory's: the project's own, or one of a person's or of a key's
    project: str = ""  # the folder that the client works in, where it is known
    memory: bool = True  # whether anything is told and learned
    reading: Reading = "granted"  # whether the client may read what left
    attended: bool = True  # whether a person may be there

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


def plan(asked: InterceptedRequest, decisions: Decisions, limits: ResultLimits) -> OutgoingPlan:
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
                inherited += _inherited_reminders(decisions, thread, part, text)
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


def _inherited_reminders(
    decisions: Decisions, thread: str, part: ScannedPart, text: str
) -> list[tuple[str, str]]:
    own = decisions.reminders.get(part.chain.hex(), {})
    return [] if thread in own else [(part.chain.hex(), text)]


def _large(body: RequestBody, part: ScannedPart, limits: ResultLimits) -> str:
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


def result_of(body: RequestBody, part: ScannedPart) -> PendingResult:
    """A result as layer 1 takes it."""
    content = cast("Json", body.content(part))
    value: Object = {"type": "tool_result", "tool_use_id": part.call, "content": content}
    raw = body.text[body.base + part.inner[0] : body.base + part.inner[1]]
    tool = body.talk.tools.get(part.call, ("", ""))[0]
    named = f'{{"type":"tool_result","tool_use_id":"","content":{raw}}}'
    return PendingResult(part.call, tool, Block(named, value), text_of(content))


def render_body(asked: InterceptedRequest, made: OutgoingPlan, known: int) -> str | None:
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
    inside, outside = spare_marks(body, known, frozenset(touched))
    if not pieces and not inside and not outside:
        return None
    return apply_patches(body, [*pieces, *inside], outside)
