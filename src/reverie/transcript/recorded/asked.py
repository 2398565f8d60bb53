"""What a person said when a client asked them, found in the results that clients put it into.

Clients hand a person's correction, or their answer to a question, to the model as a tool result.
Known phrases are told apart: the result keeps the client's own sentence, the words are the
user's. A result that only quotes such a phrase stays what it is: it must be all of the result,
and of a call that failed or that asks. Nothing here guesses.
"""

from __future__ import annotations

import re

from reverie.transcript.blocks import Block, dump

ASKS = "AskUserQuestion"
_REJECTED = re.compile(
    r"(?s)(The user doesn't want to proceed with this tool use\. The tool use was rejected"
    r"[^\n]{0,200}, the user said:)\n(?!The user wants to clarify these questions)(.+)"
)
_ANSWERED = re.compile(
    r"(?s)(User has answered your questions:) (.+?)\."
    r"(?: You can now continue with the user's answers in mind\.)?"
)


def apart(block: Block, tool: str) -> tuple[Block, str]:
    """A result without the user's words, and those words; the block itself where it has none."""
    content = block.value.get("content") if block.type == "tool_result" else None
    if not isinstance(content, str):
        return block, ""
    found = None
    if block.value.get("is_error") is True:
        found = _REJECTED.fullmatch(content)
    elif tool == ASKS:
        found = _ANSWERED.fullmatch(content)
    if found is None or not found[2].strip():
        return block, ""
    return block.with_member("content", dump(found[1])), found[2].strip()
