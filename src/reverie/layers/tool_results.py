"""Layer 1: tool-result storage. Large results live on disk; the context gets their two ends.

Two looks at each result, both before the model first sees it. `per_result` runs when a
result is added; `per_message` when all results of a round are in, over what is still
unsent. Each returns decisions with the exact text that stands in, and a decision once
taken is never taken again: not with other thresholds, not on resume, not in a fork.

What is read from a stored result's file is never stored again, or reading it would go round in
circles. The file is written before the decision is made. Where that fails the result stays whole
in the context, and the failure is said. Nothing is lost, nothing here calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType

from reverie.errors import StoreError
from reverie.transcript.blocks import Block, Json, dump, media_of, members, text_of
from reverie.transcript.mentions import error_lines, is_failure, outline, reference
from reverie.transcript.messages import stays_whole
from reverie.transcript.records import AssistantMessage, Failed, Record, ResultDecided, unchanging
from reverie.transcript.view import View
from reverie.world import Notice, ReadBackHint, World

NAME = "tool_results"
FOLDER = "tool-results"
TAG = "persisted-output"
READS = "Read"
HEAD_SHARE = 5, 3  # of what is shown of a result, three fifths are its beginning
TAIL_SHARE = 5  # where the context is collapsed, the part of its tail one result may take
OUTLINE_ENDS = 500  # bytes of the two ends where the context is collapsed
OUTLINE_NAMES = 1_000
ERRORS_AT = 30_000  # characters at a result's end that are searched for errors
ERROR = 240  # characters of a line that names one
_NO_THRESHOLDS: Mapping[str, int] = MappingProxyType({})
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EXIT = re.compile(r"\AExit code (\d{1,3})$|^\[exit code (-?\d{1,3})\]\s*\Z", re.MULTILINE)
_TAG_INSIDE = re.compile(rf"<(?=/?{TAG})", re.IGNORECASE)


@unchanging
class PendingResult:
    """A tool result that no request has carried yet."""

    call: str
    tool: str
    block: Block
    text: str
    runs: bool = False  # whether the call ran a command


class ResultBudgets:
    """What results may measure, as it stands at one look at them."""

    __slots__ = ("collapses", "settings", "thresholds", "tools", "way_back")

    def __init__(self, world: World) -> None:
        found = world.flags.get("tool_result_thresholds")
        self.thresholds: Mapping[str, int] = (
            found if found and isinstance(found, Mapping) else _NO_THRESHOLDS
        )
        self.settings = world.scaled
        self.tools = world.tool_limits
        self.collapses = world.collapses
        self.way_back = world.way_back

    def of(self, tool: str) -> int | None:
        """Characters a tool's result may have; None where the tool bounds its own output."""
        settings = self.settings
        limit = self.tools.get(tool, settings.result_characters)
        if self.collapses and not self.way_back.reads(tool, ""):
            whole = settings.collapse_reference if tool == READS else settings.collapse_offload
            tokens = min(whole, settings.collapse_tail // TAIL_SHARE)
            small = tokens * settings.text_bytes_per_token
            limit = small if limit is None else min(limit, small)
        return limit if limit is None else self.thresholds.get(tool, limit)


async def per_result(view: View, world: World) -> Sequence[Record]:
    """Store each new result that is over its own budget."""
    results = _unsent(view)
    return await _decide_results(view, results, ResultBudgets(world), world) if results else ()


async def _decide_results(
    view: View, results: Sequence[PendingResult], budgets: ResultBudgets, world: World
) -> list[Record]:
    """What becomes of those that nothing was decided of yet."""
    out: list[Record] = []
    for result in results:
        if result.call in view.decisions:
            continue
        budget = None if _stays(result, view, budgets) else budgets.of(result.tool)
        if budget is None:
            out.append(ResultDecided(result.call, "kept", "the tool bounds its own output"))
        elif len(result.text) <= budget:
            out.append(ResultDecided(result.call, "kept"))
        else:
            out += await _store(result, world, budgets, f"over {budget:,} characters")
    return out


async def per_message(view: View, world: World) -> Sequence[Record]:
    """Store the largest new results until the message as a whole fits."""
    results = _unsent(view)
    if not results:
        return ()
    budgets = ResultBudgets(world)
    limit = budgets.settings.message_result_characters
    out = await _decide_results(view, results, budgets, world)
    if sum([len(r.text) for r in results]) <= limit:
        return out
    decided = {r.call: r for r in out if isinstance(r, ResultDecided)}
    sizes = {r.call: _size_now(r, decided.get(r.call)) for r in results}
    movable = [
        r
        for r in results
        if budgets.of(r.tool) is not None
        and _is_whole(r, view, decided.get(r.call))
        and not _stays(r, view, budgets)
    ]
    for result in sorted(movable, key=lambda r: -len(r.text)):
        small = len(result.text) <= budgets.settings.result_preview_bytes
        if small or sum(sizes.values()) <= limit:
            break
        why = f"the message is over {limit:,} characters"
        records = await _store(result, world, budgets, why)
        out = [r for r in out if not _about(r, result.call)] + records
        sizes[result.call] = _size_now(result, _last_decision(records))
    return out


def _about(record: Record, call: str) -> bool:
    return isinstance(record, ResultDecided) and record.call == call


def _last_decision(records: Sequence[Record]) -> ResultDecided | None:
    return next((r for r in reversed(records) if isinstance(r, ResultDecided)), None)


def _unsent(view: View) -> list[PendingResult]:
    out: list[PendingResult] = []
    for item in view.unsent():
        if not item.results or item.kind != "message":
            continue
        for piece in item.pieces:
            block = piece.block
            if block.type == "tool_result":
                call = block.call
                known = view.calls.get(call)
                text = text_of(block.value.get("content"))
                runs = "command" in _call_input(call, view)
                out.append(PendingResult(call, known.name if known else "", block, text, runs))
    return out


def _stays(result: PendingResult, view: View, budgets: ResultBudgets) -> bool:
    """Whether a result stays whatever the budgets say: a file that is read back, or, where a tool
    of a client's own does that, one that such a tool read."""
    read = _reads_stored(result, view, budgets.way_back)
    if read or not budgets.way_back.folder:
        return read
    limit = budgets.settings.read_whole * budgets.settings.text_bytes_per_token
    return stays_whole(result.tool, _call_input(result.call, view), result.text, limit)


def _reads_stored(result: PendingResult, view: View, way_back: ReadBackHint) -> bool:
    """Whether a result was read from a stored one's file."""
    if way_back.folder and result.tool == way_back.tool:
        return way_back.reads(result.tool, dump(_call_input(result.call, view)))
    if result.tool != READS:
        return False
    path = str(_call_input(result.call, view).get("file_path", ""))
    if f"{FOLDER}/" not in path:
        return False
    return any(d.path and path.endswith(d.path) for _, d in view.decisions.items())


def _call_input(call: str, view: View) -> Mapping[str, Json]:
    known = view.calls.get(call)
    entry = view.entries.find(known.message) if known else None
    blocks = entry.record.blocks if entry and isinstance(entry.record, AssistantMessage) else ()
    given = next((b.value.get("input") for b in blocks if b.call == call), None)
    return given if isinstance(given, dict) else {}


def _is_whole(result: PendingResult, view: View, new: ResultDecided | None) -> bool:
    decision = new or view.decisions.get(result.call)
    return decision is None or decision.action == "kept"


def _size_now(result: PendingResult, decision: ResultDecided | None) -> int:
    if decision is None or not decision.content:
        return len(result.text)
    return len(text_of(members('{"c":' + decision.content + "}")["c"][1]))


async def store_result(block: Block, tool: str, world: World, why: str) -> list[Record]:
    """Store one result, whatever its size."""
    result = PendingResult(block.call, tool, block, text_of(block.value.get("content")))
    return await _store(result, world, ResultBudgets(world), why)


async def _store(
    result: PendingResult, world: World, budgets: ResultBudgets, why: str
) -> list[Record]:
    key, data = file_of(result)
    try:
        path = await world.disk.write(key, data)
    except StoreError as error:
        world.say(Notice(NAME, f"a large result stays in the context: {error}", "warning"))
        kept = ResultDecided(result.call, "kept", "it could not be stored")
        return [Failed(NAME, str(error), result.call), kept]
    where = world.way_back.stored(path, reference(result.call))
    return [stored_decision(result, key, data, where, _preview(result, budgets), why)]


def file_of(result: PendingResult) -> tuple[str, bytes]:
    """The file that keeps a result whole: its name in the session's folder, and its bytes."""
    data, ending = _bytes(result.block)
    return f"{FOLDER}/{file_name(result.call)}{ending}", data


def stored_decision(
    result: PendingResult, key: str, data: bytes, where: str, preview: str, why: str
) -> ResultDecided:
    """The decision about one result whose file is written: what stands in for it from now on.
    Pure: the same result, place and preview give the same bytes, at whatever door."""
    content = _stand_in(result, data, where, preview)
    return ResultDecided(
        result.call, "stored", why, content, key, len(data), sha256(data).hexdigest()
    )


def file_name(call: str) -> str:
    """A name from the call's id alone; text inside a result never chooses a path."""
    if _SAFE_ID.fullmatch(call):
        return call
    return sha256(call.encode("utf-8", "surrogatepass")).hexdigest()


def _bytes(block: Block) -> tuple[bytes, str]:
    """The whole result: plain text where it is only text, else its JSON as received."""
    content = block.value.get("content")
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass"), ".txt"
    return members(block.raw)["content"][0].encode(), ".json"


def _stand_in(result: PendingResult, data: bytes, where: str, preview: str) -> str:
    """The JSON text of the content that is sent: the preview, and any pictures."""
    safe = _TAG_INSIDE.sub("&lt;", preview)
    text = (
        f"<{TAG}>\n"
        f"This result has {len(result.text):,} characters ({len(data):,} bytes) "
        f"{where}{_exit_code(result.text)} {safe}\n"
        f"</{TAG}>"
    )
    content = result.block.value.get("content")
    if isinstance(content, str):
        return dump(text)
    return dump([{"type": "text", "text": text}, *media_of(content)])


def _preview(result: PendingResult, budgets: ResultBudgets) -> str:
    """The two ends of a result in whole lines, and of a command or a failure the lines that name
    an error; where the context is collapsed, shorter, and with its names."""
    text, size = result.text, budgets.settings.result_preview_bytes
    shown = ends(text, OUTLINE_ENDS if budgets.collapses else size)
    found = outline(text, OUTLINE_NAMES, shown) if budgets.collapses else ""
    names = f"Names in it: {found}\n" if found else ""
    return f"{names}{_errors(result, shown)}It begins:\n\n{shown}"


def _errors(result: PendingResult, shown: str) -> str:
    """Lines between the two ends that name an error: the first and the last ones."""
    if not (result.runs or is_failure(result.block)):
        return ""
    found = dict.fromkeys(error_lines(result.text, ERRORS_AT))
    every = [line[:ERROR] for line in found if line not in shown]
    lines = [*every[:1], *every[1:][-2:]]
    return "\n".join(["Lines with errors:", *lines, ""]) if lines else ""


def _exit_code(text: str) -> str:
    """How the command ended that a result is of, as it says itself at one of its ends."""
    found = _EXIT.search(text[:40]) or _EXIT.search(text[-40:])
    return f" It ended with exit code {found[1] or found[2]}." if found else ""


def cut(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` bytes of a text, cut at a line end; and whether that is all of it."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text, True
    head = data[:limit].decode("utf-8", "ignore")
    line = head.rfind("\n")
    return (head[:line] if line > 0 else head), False


def ends(text: str, limit: int) -> str:
    """The beginning and the end of a text, `limit` bytes together, both cut at line ends."""
    whole, share = HEAD_SHARE
    room = limit * share // whole
    head, is_all = cut(text, room)
    if is_all:
        return text
    foot = _last(text[len(head) :], limit - room)
    left = text.count("\n", len(head) + 1, len(text) - len(foot))
    told = f"[… {left:,} lines …]" if left > 1 else "[…]"
    return f"{head}\n{told}\n{foot}"


def _last(text: str, limit: int) -> str:
    """The last `limit` bytes of a text, from a line's beginning where there is one."""
    foot = text.encode("utf-8", "replace")[-limit:].decode("utf-8", "ignore")
    line = foot.find("\n", 0, len(foot) - 1)
    return foot[line + 1 :] if line >= 0 else foot
