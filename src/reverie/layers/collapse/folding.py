"""Old lines folded: the user's words, the answers, and every call by its reference.

When lines pass their budget the older ones become what was said, in its order, then the paths
that were touched and the commands and searches that were made, each with its references. It
is made from the transcript, not from the lines. The answer that the user replied to last
still stands whole. One announced move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from reverie.layers.collapse import words
from reverie.layers.collapse.lines import FOREIGN, subject
from reverie.settings import Settings
from reverie.text.format import utc_minute
from reverie.transcript.blocks import Block, text_block, text_of
from reverie.transcript.messages import Item
from reverie.transcript.names import reference
from reverie.transcript.recorded import asked
from reverie.transcript.records import AssistantMessage, Replaced, Stand, UserMessage, is_wish
from reverie.transcript.view import View

SEALED = "collapse"
FOLDED = "collapse fold"
FOLD_SHARE = 2 / 3
FOLDED_SAID = 300  # characters of an answer in folded lines
FOLDED_CALL = 40  # characters of what a command or search was asked
CALLS = "[Folded calls, by what they touched]"


def fold_lines(view: View, settings: Settings, coming: int) -> list[Item]:
    """The sealed lines that are to be folded now; none where they are few."""
    runs = groupby(view.items[: view.live], lambda item: item.reason == SEALED)
    lines = max([list(run) for sealed, run in runs if sealed], key=len, default=list[Item]())
    total = sum([i.tokens for i in lines]) + coming
    if total <= settings.collapse_log or len(lines) < 2:
        return []
    size, count = 0, 0
    while count < len(lines) and size < total * FOLD_SHARE:
        size += lines[count].tokens
        count += 1
    return lines[:count]


def folded(
    view: View, old: Sequence[Item], intro: Block | None, settings: Settings, summary: str = ""
) -> Replaced | None:
    """The record that folds these lines, with a model's summary where there is one; None where
    it would save nothing."""
    size = sum([i.tokens for i in old])
    text = "\n".join(filter(None, (folded_text(view, old, settings), summary)))
    block = text_block(framed(view, old, text, "folded"))
    if block.tokens >= size:
        return None
    blocks = (block,) if intro is None else (intro, block)
    why = f"sealed lines had {size:,} tokens"
    return Replaced(old[0].id, old[-1].id, (Stand("user", blocks),), FOLDED, why=why)


def framed(view: View, items: Iterable[Item], text: str, what: str) -> str:
    """Lines between marks that say of when they are, where that is known, and where they end."""
    found = [view.entries.find(ident) for item in items for ident in item.covers or (item.id,)]
    at = [entry.at for entry in found if entry is not None and entry.at > 0]
    when = f" {utc_minute(min(at))} to {utc_minute(max(at))[11:]} UTC" if at else ""
    return f"[{what}{when}]\n{text}\n[end]"


def folded_text(view: View, items: Sequence[Item], settings: Settings) -> str:
    spoken: list[str] = []
    touched: dict[str, list[str]] = {}
    newest = replied_to(view)
    for entry in view.entries.among(frozenset[str]().union(*[i.covers for i in items])):
        record = entry.record
        if isinstance(record, UserMessage):
            spoken += _told(view, record, reference(entry.id), settings.text_bytes_per_token)
        elif isinstance(record, AssistantMessage):
            text = words.texts(record.blocks)
            calls = [b for b in record.blocks if b.type == "tool_use"]
            if text and entry.id == newest:
                spoken.append(words.of_assistant(text, reference(entry.id), None))
            elif text and not calls:
                spoken.append(words.of_assistant(text, reference(entry.id), FOLDED_SAID))
            for block in calls:
                about = subject(block) or _asked(block)
                touched.setdefault(about, []).append(reference(block.call))
    made = [f"{about} {' '.join(refs)}" for about, refs in touched.items()]
    return "\n".join([*spoken, CALLS, *made] if made else spoken)


def _told(view: View, record: UserMessage, ref: str, bytes_per_token: int) -> list[str]:
    out: list[str] = []
    for block in record.blocks:
        if block.type == "tool_result":
            known = view.calls.get(block.call)
            name = known.name if known else ""
            said = "" if name.startswith(FOREIGN) else asked.apart(block, name)[1]
            out += [f"<user>{said}</user>"] if said else []
        elif block.type != "text":
            out.append(f"[{block.type}] {ref}")
        elif is_wish(block.get("text"), record.origin):
            out.append(words.of_user(block.get("text"), ref, bytes_per_token))
        elif record.origin not in ("tool", "interrupted") and not block.blank:
            out.append(words.aside(block.get("text"), ref))
    return out


def _asked(block: Block) -> str:
    """A call without a path: its tool, and the first words of what it was asked."""
    given = block.value.get("input")
    first = next(iter(given.values()), "") if isinstance(given, dict) else ""
    told = words.one_line(text_of(first) if not isinstance(first, str) else first, FOLDED_CALL)
    return f"{block.get('name')} {told}".rstrip()


def replied_to(view: View) -> str:
    """The assistant's message before the user's newest words; empty where there is none."""
    spoke = False
    for at in range(len(view.entries) - 1, -1, -1):
        entry = view.entries[at]
        record = entry.record
        if isinstance(record, UserMessage):
            spoke = spoke or any(
                b.type == "text" and is_wish(b.get("text"), record.origin) for b in record.blocks
            )
        elif spoke and isinstance(record, AssistantMessage) and words.texts(record.blocks):
            return entry.id
    return ""
