"""Conversations for the embedded answers, built on the fold as a session builds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    Entry,
    Record,
    Task,
    UserMessage,
    View,
    apply,
    block_of,
    blocks_of,
    text_block,
)
from reverie.wire import Request, render

INSTRUCTION = "Do the background task now. Never quote_this_instruction."


class Talk:
    """A conversation that grows; entries are named e1, e2, …"""

    def __init__(self) -> None:
        self.view: View = EMPTY
        self.calls = 0

    @property
    def last(self) -> str:
        return self.view.leaf

    def put(self, record: Record) -> str:
        ident = f"e{len(self.view.entries) + 1}"
        self.view = apply(self.view, Entry(ident, self.view.leaf, 1.0, record))
        return ident

    def user(self, words: str | list[dict[str, Any]]) -> str:
        return self.put(UserMessage(blocks_of(words)))

    def say(self, words: str) -> str:
        return self.put(AssistantMessage((text_block(words),)))

    def call(
        self, tool: str, result: str, *, error: bool = False, said: str = "", **given: Any
    ) -> str:
        """A call and its result; gives the call's id."""
        self.calls += 1
        ident = f"call_{self.calls}"
        use = block_of({"type": "tool_use", "id": ident, "name": tool, "input": given})
        self.put(AssistantMessage((*blocks_of(said), use) if said else (use,)))
        back = {"type": "tool_result", "tool_use_id": ident, "content": result}
        self.put(UserMessage((block_of({**back, "is_error": True} if error else back),), "tool"))
        return ident

    def asked(self, task: Task, *more: Block) -> Request:
        """The request of a fork: the conversation, and an instruction behind it."""
        record = UserMessage((text_block(INSTRUCTION), *more), "instruction")
        ahead = apply(self.view, Entry("instruction", self.view.leaf, 2.0, record))
        return replace(render(ahead, task.kind, task), task=task)


def coding() -> Talk:
    """A turn of work on a small program, with a failure that is mended."""
    talk = Talk()
    talk.user("Make parse_header in /home/user/app/frames.py strict. Never touch vendored_code.")
    talk.call(
        "Read",
        "def parse_header(raw):\n    return decode_prefix(raw)\n",
        said="I look at the parser first.",
        file_path="/home/user/app/frames.py",
    )
    talk.call("Bash", "E   ValueError: bad prefix 7\n1 failed", error=True, command="pytest -x")
    talk.call(
        "Edit",
        "Replaced 1",
        said="The prefix must be checked before it is decoded.",
        file_path="/home/user/app/frames.py",
        old_string="return decode_prefix(raw)",
        new_string="return decode_prefix(checked_prefix(raw))",
    )
    talk.call("Bash", "1 passed in 0.1s", command="pytest -x")
    todos = [
        {"content": "Make the parser strict", "status": "completed"},
        {"content": "Write the release notes", "status": "pending"},
    ]
    talk.call("TodoWrite", "ok", todos=todos)
    talk.say("The parser is strict now and the tests pass.")
    return talk
