"""What a request holds when a session with a memory is asked something: for benches that judge
by what is sent, and by nothing that the product says of itself.

The session is a real one, opened for the one request and closed again. Recall is given more time
than in life, so that a busy machine changes no figure; how fast it is, is measured elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.agent import AgentOptions, open_agent
from reverie.session import open_session
from reverie.settings import Settings
from reverie.store import MemoryStore, Project
from reverie.testing import ManualClock, ScriptedModel
from reverie.topics import Origin, Trust, new
from reverie.wire import user

PATIENT = Settings(selector_milliseconds=60_000, recall_timeout_seconds=60)
ENVIRON = {"REVERIE_SELECTOR_MILLISECONDS": "60000", "REVERIE_RECALL_TIMEOUT_SECONDS": "60"}
BY_USER = Origin("save", Trust.USER)


@dataclass(frozen=True, slots=True)
class Note:
    """A memory to be put into a folder."""

    file: str
    type: str
    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Home:
    """A home with one project, and a memory that the user stands behind."""

    base: Path

    @property
    def project(self) -> Path:
        folder = self.base / "project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def home(self) -> Path:
        return self.base / "home"

    def memories(self) -> MemoryStore:
        environ = {"HOME": str(self.base)}
        return MemoryStore.of(
            Project.at(self.project, home=self.home, environ=environ, settings=PATIENT),
            now=ManualClock().now,
        )

    def save(self, notes: Iterable[Note]) -> None:
        with self.memories() as memories:
            for one in notes:
                made = new(
                    one.file,
                    name=one.name,
                    description=one.description,
                    type=one.type,
                    body=one.body,
                )
                memories.save(one.file, made.data, BY_USER)

    async def agent_request(self, text: str) -> str:
        """The text of the first request of an agent's session: head, index and all."""
        model = ScriptedModel(lambda _: "All right.")
        environ = {"HOME": str(self.base), **ENVIRON}
        wanted = AgentOptions(self.project, home=self.home, environ=environ, mode="allow")
        async with open_agent(wanted, model, clock=ManualClock()) as agent:
            await agent.turn(text)
        return words_of(model.requests[0].body())

    async def session_request(self, memories: MemoryStore, text: str) -> str:
        """The text of a session's first request without a head: the message and what joins it."""
        async with open_session(
            self.project,
            model="bench",
            home=self.home,
            environ={"HOME": str(self.base)},
            settings=PATIENT,
            clock=ManualClock(),
            memories=memories,
        ) as session:
            await session.add(user(text))
            return words_of((await session.prepare()).body())


def words_of(body: str) -> str:
    """Every text in a request, one after the other."""
    return "\n".join(_texts(json.loads(body)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def stands(body: str, text: str) -> bool:
    """Whether every line of a body stands in a text."""
    return all(line.strip() in text for line in body.splitlines() if line.strip())
