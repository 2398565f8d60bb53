"""What left the context, found again by its short reference.

`r:abc123` names a tool call of this session: its input as the model wrote it, and its
result whole, from the transcript or from the file it was stored in. It may also name a
message of the user's that a summary had to cut. A file that was deleted or changed since
is said to be. Nothing is written.
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
        if not calls:
            return _said(view, wanted)
        parts = [self._whole(view, call) for call in calls]
        title = ", ".join(f"{call.name} {call.id}" for call in calls)
        return Referenced(
            title, "\n\n".join(t for t, _ in parts), " ".join(w for _, w in parts if w)
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
        return f"{text}\n\n[The call was {call.name} {asked}]", warning

    def _file(self, decision: ResultDecided) -> tuple[str, str]:
        try:
            data = self.folder.read(f"{self.session}/{decision.path}")
        except (NotFound, StoreError):
            return "", "The stored result was deleted; run the tool again."
        same = digest(data) == decision.sha256
        warning = "" if same else "The stored result was changed since it was stored."
        return data.decode("utf-8", "replace"), warning


def _said(view: View, wanted: str) -> Referenced | None:
    """A message of the user's, whole, where a summary had to cut it."""
    for entry in view.entries:
        record = entry.record
        if not isinstance(record, UserMessage) or record.origin == "tool":
            continue
        if reference(entry.id) == wanted:
            return Referenced(f"user message {entry.id}", "\n".join(b.text for b in record.blocks))
    return None


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
