"""What left the context, found again by its short reference.

`r:abc123` names a tool call of this session: its input as the model wrote it, its result
whole, from the transcript or from the file it was stored in, and what was said beside it. It
may also name a message, of the user's or the assistant's. A file that was deleted or changed
since is said to be. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable

from anyio import to_thread

from reverie.errors import NotFound, StoreError
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.plain import digest
from reverie.tools.tool import Referenced
from reverie.transcript.blocks import text_of
from reverie.transcript.names import REFERENCE, reference
from reverie.transcript.records import AssistantMessage, ResultDecided, UserMessage
from reverie.transcript.view import Call, View


@dataclass(frozen=True, slots=True)
class SealedCalls:
    """A `Source` for ReadBack over one session."""

    view: Callable[[], View]
    folder: Folder
    session: str

    async def find(self, reference: str) -> Referenced | None:
        if not REFERENCE.fullmatch(reference):
            return None
        return await to_thread.run_sync(self.look, reference)

    def look(self, wanted: str) -> Referenced | None:
        """The same, for whoever may wait for a disk."""
        view = self.view()
        calls = [call for name, call in view.calls.items() if reference(name) == wanted]
        found = [Referenced(f"{c.name} {c.id}", *self._whole(view, c)) for c in calls]
        found += _messages(view, wanted)
        if not found:
            return None
        return Referenced(
            ", ".join(f.title for f in found),
            "\n\n".join(f.text for f in found),
            " ".join(f.warning for f in found if f.warning),
        )

    def _whole(self, view: View, call: Call) -> tuple[str, str]:
        """A result and the call behind it, so that the result's lines have the numbers that its
        file has; and a warning where it cannot be vouched for."""
        asked = _input(view, call)
        decision = view.decisions.get(call.id)
        if decision is not None and decision.path:
            text, warning = self._file(decision)
        else:
            text, warning = _result(view, call), ""
        beside = f"\n\n[You said with it: {said}]" if (said := _beside(view, call)) else ""
        return f"{text}\n\n[The call was {call.name} {asked}]{beside}", warning

    def _file(self, decision: ResultDecided) -> tuple[str, str]:
        try:
            data = self.folder.read(f"{self.session}/{decision.path}")
        except (NotFound, StoreError):
            return "", "The stored result was deleted; run the tool again."
        same = digest(data) == decision.sha256
        warning = "" if same else "The stored result was changed since it was stored."
        return data.decode("utf-8", "replace"), warning


def _messages(view: View, wanted: str) -> list[Referenced]:
    """Messages of that reference, whole: the user's, or answers of the assistant's."""
    out: list[Referenced] = []
    for entry in view.entries:
        record = entry.record
        if isinstance(record, UserMessage) and record.origin != "tool":
            who = "user"
        elif isinstance(record, AssistantMessage):
            who = "assistant"
        else:
            continue
        if reference(entry.id) == wanted:
            text = "\n".join(b.text for b in record.blocks if not b.thinking)
            out.append(Referenced(f"{who} message {entry.id}", text))
    return out


def _beside(view: View, call: Call) -> str:
    """What the message of a call says beside it."""
    entry = view.entries.find(call.message)
    record = entry.record if entry else None
    blocks = record.blocks if isinstance(record, AssistantMessage) else ()
    return "\n".join(b.get("text") for b in blocks if b.type == "text" and not b.blank)


def _input(view: View, call: Call) -> str:
    entry = view.entries.find(call.message)
    record = entry.record if entry else None
    if not isinstance(record, AssistantMessage):
        return ""
    return next((text_of(b.value) for b in record.blocks if b.get("id") == call.id), "")


def _result(view: View, call: Call) -> str:
    """The result as it came: the transcript keeps what the context no longer shows."""
    start = view.entries.place(call.message)
    for entry in view.entries.since(start or 0):
        if isinstance(entry.record, UserMessage):
            for block in entry.record.blocks:
                if block.type == "tool_result" and block.call == call.id:
                    return text_of(block.value.get("content"))
    return ""
