"""No part of a secret stands in an error, a notice, a screen or a file's name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.secret_texts import made
from reverie import secrets
from reverie.apps.cli import build
from reverie.consolidation import CheckInput, judged_once
from reverie.errors import SecretFound
from reverie.secrets import ScanStats, scan, tellable
from reverie.session import ConversationText, MemoryDraft, TextSource, land
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.testing import ManualClock
from reverie.toolbox import MemoryFileAccess, ToolFailed
from reverie.topics import Origin, Trust
from reverie.world import Notice

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]
BY = Origin("save", Trust.USER, agent="user")
TEMPLATES = ("sk-ant-oat01-{w86}-{w6}AA", "gsk_{a52}", "AKIA{t16}", "hf_{c34}", "{d10}:AA{w33}")


def made_secret(template: str) -> str:
    return made(template, random.Random(template))


def parts(secret: str) -> Iterator[str]:
    """Every six letters and digits in a row, as a file name would have them."""
    plain = "".join(filter(str.isalnum, secret)).casefold()
    return (plain[at : at + 6] for at in range(len(plain) - 5))


def untold(secret: str, *texts: str) -> None:
    whole = "".join(filter(str.isalnum, " ".join(texts))).casefold()
    assert [part for part in parts(secret) if part in whole] == []


@pytest.fixture
def said() -> list[Notice]:
    return []


@pytest.fixture
def memories(tmp_path: Path, said: list[Notice]) -> Iterator[MemoryStore]:
    (tmp_path / "project").mkdir()
    clock = ManualClock(1_790_000_000.0)
    home = tmp_path / "home"
    project = Project.at(tmp_path / "project", home=home, environ={}, settings=DEFAULTS)
    with MemoryStore.of(project, now=clock.now, say=said.append) as opened:
        yield opened


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_memory_that_begins_with_a_secret(
    memories: MemoryStore, said: list[Notice], template: str
) -> None:
    secret = made_secret(template)
    for text in (f"{secret} is the key", f"Use {secret}. It works.", f"# {secret}\nfor CI"):
        with pytest.raises(SecretFound) as caught:
            memories.remember(text, BY)
        untold(secret, str(caught.value), repr(caught.value), repr(vars(caught.value)))
    every = [str(path) for path in memories.folder.root.parent.parent.rglob("*")]
    untold(secret, *(Path(path).name for path in every))
    untold(secret, *(notice.text for notice in said))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_file_named_after_its_secret(
    memories: MemoryStore, said: list[Notice], template: str
) -> None:
    secret = made_secret(template)
    key = f"project_{secret.casefold().replace('-', '_').replace(':', '_')[:40]}.md"
    files = MemoryFileAccess(memories.folder.root, memories=memories)
    with pytest.raises(ToolFailed) as caught:
        files.write(memories.folder.root / key, f"The key is {secret}.\n".encode(), None)
    untold(secret, str(caught.value), repr(vars(caught.value)), repr(said))


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_an_extraction_wanted_to_save(
    memories: MemoryStore, said: list[Notice], template: str
) -> None:
    secret = made_secret(template)
    stem = "".join(filter(str.isalnum, secret)).casefold()[:30]
    text = f"---\nname: key\ndescription: d\ntype: project\n---\nThe key is {secret}.\n"
    for words in ((), (f"remember: the key is {secret}",)):
        heard = ConversationText.of(*words)
        draft = MemoryDraft(f"{stem}.md", None, text.encode())
        done = land([draft], memories, heard, TextSource("s"))
        assert done.refused
        untold(secret, repr(done), repr(said))


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_a_dream_brought_in(template: str) -> None:
    secret = made_secret(template)
    stem = "".join(filter(str.isalnum, secret)).casefold()[:30]
    head = "---\nname: key\ndescription: d\ntype: project\n---\n"
    work = {f"{stem}.md": f"{head}The key is {secret}.\n".encode()}
    faults = judged_once(CheckInput({}), work).faults
    told = [str(fault) for fault in faults if fault.kind == "secret"]
    assert told
    untold(secret, *told)


def test_a_name_that_is_itself_a_secret_is_not_told() -> None:
    secret = made_secret(TEMPLATES[1])
    with pytest.raises(SecretFound) as caught:
        secrets.check_clean("Nothing to see here.\n", f"notes/{secret}.md")
    assert "its name" in str(caught.value)
    untold(secret, str(caught.value), repr(vars(caught.value)))


def test_a_name_of_its_own_is_told(memories: MemoryStore) -> None:
    secret = made_secret(TEMPLATES[1])
    with pytest.raises(SecretFound) as caught:
        memories.remember(f"The key is {secret}", BY, key="groq_login.md")
    assert "groq_login.md" in str(caught.value)
    assert secrets.tellable("notes/a.md", "anything") == "notes/a.md"


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_command_line(home: Path, tmp_path: Path, template: str) -> None:
    secret = made_secret(template)
    project = tmp_path / "work"
    project.mkdir()
    done = CliRunner().invoke(
        build(), ["memory", "add", f"{secret} is the key", "--project", str(project)]
    )
    assert done.exit_code != 0
    untold(secret, done.output, str(done.exception))


def test_a_name_is_told_where_no_six_letters_of_it_are_the_texts() -> None:
    assert tellable("team/deploy-key-x.md", "the deploy key x is") == ""
    assert tellable("zzzzz-hunte.md", "hunte") == "zzzzz-hunte.md"
    assert tellable("zzzzz-hunter.md", "hunter") == ""


def test_a_plain_text_is_read_once_and_its_name_once() -> None:
    for name, views in (("", 1), ("a.md", 2)):
        work = ScanStats()
        assert scan("hello there", name, work) == ()
        assert work.views == views
