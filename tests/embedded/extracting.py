"""A conversation, a memory folder on disk, and extraction over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from reverie.embedded import answer_extraction
from reverie.session import written_files
from reverie.topics import INDEX, TopicFile
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Attached,
    ExtractTask,
    HeadSet,
    KnownMemory,
    Record,
    UserMessage,
    View,
    apply,
    block_of,
    blocks_of,
    text_block,
)
from reverie.transcript import Entry as Row
from reverie.wire import Request, render

WEDNESDAY = datetime(2026, 3, 11, 12, tzinfo=UTC).timestamp()


@dataclass
class Talk:
    """What was said, by whom and when; `extract` runs the rounds of one extraction."""

    folder: Path
    view: View = EMPTY
    times: list[tuple[str, float]] = field(default_factory=list)
    since: str = ""
    injected: tuple[str, ...] = ()
    instructions: str = ""
    number: int = 0
    written: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.put(HeadSet("embedded"))
        self.folder.mkdir(parents=True, exist_ok=True)

    def put(self, record: Record, at: float = WEDNESDAY) -> str:
        self.number += 1
        self.view = apply(self.view, Row(f"n{self.number}", self.view.leaf, at, record))
        return self.view.leaf

    def say(self, *words: str, at: float = WEDNESDAY) -> Talk:
        for one in words:
            self.times.append((self.put(UserMessage(blocks_of(one)), at), at))
            self.put(AssistantMessage((text_block("All right."),)))
        return self

    def attach(self, text: str) -> Talk:
        self.put(Attached((text_block(text),), "recall"))
        return self

    def result(self, text: str) -> Talk:
        used = {"type": "tool_use", "id": f"t{self.number}", "name": "Bash", "input": {}}
        self.put(AssistantMessage((block_of(used),)))
        made = {"type": "tool_result", "tool_use_id": used["id"], "content": text}
        self.put(UserMessage((block_of(made),), "tool"))
        return self

    def known(self) -> tuple[KnownMemory, ...]:
        paths = sorted(self.folder.glob("*.md"))
        found = [TopicFile(p.name, p.read_bytes()) for p in paths if p.name != INDEX]
        return tuple(KnownMemory(one.key, one.type, one.name, one.description) for one in found)

    def task(self) -> ExtractTask:
        return ExtractTask(
            folder=str(self.folder),
            since=self.since,
            times=tuple(self.times),
            memories=self.known(),
            injected=self.injected,
            instructions=self.instructions,
        )

    def request(self, task: ExtractTask, view: View) -> Request:
        request = render(view)
        request.task = task
        return request

    async def extract(self, task: ExtractTask | None = None) -> str:
        """The answer of a run; its files are put into the folder, where none is there."""
        task = task or self.task()
        here, number = self.view, self.number
        self.put(UserMessage((text_block("Write down what is worth keeping."),), "instruction"))
        (block,) = answer_extraction(self.request(task, self.view))
        self.view, self.number = here, number
        self.written = dict(written_files(block.get("text")))
        for key, data in self.written.items():
            if not (self.folder / key).exists():
                (self.folder / key).write_bytes(data)
        return block.get("text")

    def texts(self) -> dict[str, str]:
        paths = sorted(self.folder.glob("*.md"))
        return {p.name: p.read_text(encoding="utf-8") for p in paths if p.name != INDEX}

    @property
    def entries(self) -> list[TopicFile]:
        return [TopicFile(name, text.encode()) for name, text in self.texts().items()]

    @property
    def index(self) -> str:
        path = self.folder / INDEX
        return path.read_text(encoding="utf-8") if path.exists() else ""


def bodies(entries: Sequence[TopicFile]) -> list[str]:
    return [one.body.strip() for one in entries]
