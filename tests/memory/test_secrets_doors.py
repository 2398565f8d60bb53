"""Every door by which a text becomes a memory is searched, for secrets told in prose too.

Notes, summaries and dreams have their own tests, where they are made.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie import Memory
from reverie.apps.cli import build
from reverie.errors import SecretFound
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.testing import ManualClock
from reverie.toolbox import MemoryFileAccess, ToolFailed
from reverie.topics import Origin, Trust
from reverie.world import Notice

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]

SECRET = "velvet-moose41"
TEXT = f"Remember: la contraseña del servidor de pruebas es {SECRET}"


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    assert home
    made = tmp_path / "project"
    made.mkdir()
    return made


def kept(*folders: Path) -> list[Path]:
    """Every file below that holds the secret."""
    every = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [path for path in every if SECRET.encode() in path.read_bytes()]


def test_what_a_program_adds(home: Path, project: Path) -> None:
    memory = Memory(project)
    saved = memory.add("A plain text")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: memory.add(TEXT),
        lambda: memory.update(saved.file, TEXT),
        lambda: memory.add("x", description=TEXT),
    )
    for attempt in attempts:
        with pytest.raises(SecretFound) as caught:
            attempt()
        assert SECRET not in str(caught.value)
    assert kept(home, project) == []


def test_what_is_learned_from_a_conversation(home: Path, project: Path) -> None:
    said: list[Notice] = []
    memory = Memory(project, on_notice=said.append)
    for word in ("Please remember: ", "Always keep in mind: "):
        assert memory.learn([{"role": "user", "content": f"{word}{TEXT}"}]) == []
    assert kept(memory.folder) == []
    assert SECRET not in repr(said)


def test_what_is_imported(home: Path, project: Path, tmp_path: Path) -> None:
    source = tmp_path / "AGENTS.md"
    source.write_text(f"# Rules\n\n- {TEXT}\n", encoding="utf-8")
    for trust in ([], ["--trust"]):
        asked = ["memory", "import", str(source), *trust, "--project", str(project)]
        done = CliRunner().invoke(build(), asked)
        assert SECRET not in done.output
    assert kept(home) == []


def test_what_an_agent_writes(home: Path, project: Path) -> None:
    clock = ManualClock(1_790_000_000.0)
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=DEFAULTS), now=clock.now
    ) as memories:
        files = MemoryFileAccess(memories.folder.root, memories=memories)
        with pytest.raises(ToolFailed) as caught:
            files.write(memories.folder.root / "server.md", TEXT.encode(), None)
        with pytest.raises(SecretFound) as refused:
            memories.remember(TEXT, Origin("save", Trust.USER, agent="user"))
    assert SECRET not in str(caught.value) + str(refused.value)
    assert kept(home, project) == []
