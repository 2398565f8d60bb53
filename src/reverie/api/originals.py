"""What a fitted list left out, found again in the list it was made from.

A reference names a call (what was said with it, its input as it was written, its result
whole) or a message. The text is the caller's own; nothing is stored or copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from reverie.light import dataclass
from reverie.tools.toolset import Original
from reverie.transcript.blocks import Block, members, text_of
from reverie.transcript.file_reads import undecorated
from reverie.transcript.names import reference
from reverie.wire.adopting import Adopted, Adoption

MEDIA = ("image", "document")


@dataclass(frozen=True, slots=True)
class Originals:
    """The messages behind a fitted list."""

    adoption: Adoption
    plain: bool = False  # without the numbers that a tool puts before the lines of a file

    def find(self, wanted: str) -> Original | None:
        """All that a reference names: in a long list two calls may share one."""
        found = [*self._calls(wanted), *self._messages(wanted)]
        if not found:
            return None
        return Original(
            ", ".join(f.title for f in found),
            "\n\n".join(f.text for f in found),
            tuple(m for f in found for m in f.media),
        )

    def _calls(self, wanted: str) -> Iterator[Original]:
        for part in self.adoption.parts:
            for block in part.blocks if part.part == "assistant" else ():
                known = (reference(block.call), block.call, self.adoption.theirs.get(block.call))
                if block.type == "tool_use" and wanted and wanted in known:
                    yield self._call(part, block)

    def _call(self, part: Adopted, call: Block) -> Original:
        said = [_whole(b) for b in part.blocks if b.type != "tool_use"]
        asked = f"{call.get('name')} {members(call.raw)['input'][0]}"
        result = self._result(call.call)
        content = result.value.get("content") if result is not None else ""
        media = (
            [b for b in content if isinstance(b, dict) and b.get("type") in MEDIA]
            if (isinstance(content, list))
            else []
        )
        given, found = call.value.get("input"), text_of(content)
        found = undecorated(call.get("name"), given, found) if self.plain else found
        text = "\n\n".join([*[s for s in said if s], asked, found])
        return Original(f"{call.get('name')} {reference(call.call)}", text, tuple(media))

    def _result(self, call: str) -> Block | None:
        blocks = (b for part in self.adoption.parts for b in part.blocks)
        return next((b for b in blocks if b.type == "tool_result" and b.call == call), None)

    def _messages(self, wanted: str) -> Iterator[Original]:
        for part in self.adoption.parts:
            if part.part in ("user", "assistant") and reference(part.id) == wanted:
                text = "\n\n".join(filter(None, map(_whole, part.blocks)))
                yield Original(f"message {wanted}", text)


def _whole(block: Block) -> str:
    """A block in words; one that has none as it came."""
    return block.text or ("" if block.blank else block.raw)
