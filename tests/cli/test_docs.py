"""The pages about the command line and about transcripts say what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

import pytest

from reverie.store import seal, unseal
from reverie.transcript import (
    EMPTY,
    NAMES,
    AssistantMessage,
    Entry,
    HeadSet,
    Record,
    ResultDecided,
    Sent,
    Started,
    TurnEnded,
    Usage,
    UserMessage,
    apply,
    blobs,
    block_of,
    decode,
    dump,
    encode,
    fold_entries,
)
from reverie.wire import render

pytestmark = pytest.mark.spec("18")

SESSION = "3f2a6c1e-0d5b-4a7e-9c41-5b1f0e6d2a90"
STORED = "<persisted-output>\nThis result has 61,440 characters …\n</persisted-output>"


def example() -> tuple[list[str], dict[str, str], str]:
    """A small session: its lines, its blobs, and the request that it would send."""
    result = b"x" * 61_440
    digest = sha256(result).hexdigest()
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": STORED}
    said: list[Record] = [
        Started(SESSION, "/home/me/app", "/home/me/app", "0.1.0"),
        HeadSet("claude-sonnet-5", '[{"type":"text","text":"Be brief."}]'),
        UserMessage((block_of({"type": "text", "text": "Why does it fail?"}),)),
        AssistantMessage((block_of(call),), "claude-sonnet-5", usage=Usage(21, 0, 0, 12)),
        ResultDecided(
            "toolu_1",
            "stored",
            "over 50,000 characters",
            dump(STORED),
            "tool-results/toolu_1.txt",
            len(result),
            digest,
        ),
        UserMessage((block_of(answer),), "tool"),
        AssistantMessage((block_of({"type": "text", "text": "A test is missing."}),)),
        TurnEnded(),
        UserMessage((block_of({"type": "text", "text": "Add it."}),)),
    ]
    view, entries, leaf = EMPTY, [], ""
    for number, record in enumerate(said, 1):
        entry = Entry(f"e{number}", leaf, 1_790_000_000.0 + number, record)
        leaf = entry.id if entry.on_chain else leaf
        entries.append(entry)
        view = apply(view, entry)
    request = render(view)
    sent = Sent("main", view.leaf, request.parts(), request.marks)
    entries.append(Entry("e10", leaf, 1_790_000_010.0, sent))
    lines = [seal(encode(entry)).decode() for entry in entries]
    kept = {name: text for entry in entries for name, text in blobs(entry.record).items()}
    return lines, kept, request.body()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def transcripts(root: Path) -> str:
    return (root / "docs" / "transcripts.md").read_text(encoding="utf-8")


def test_the_example_is_what_would_be_written(transcripts: str) -> None:
    lines, kept, request = example()
    shown, sent = blocks(transcripts, "json")[:2]
    assert shown.splitlines() == lines
    assert sent.strip() == request
    assert all(f"blobs/{name}.json" in transcripts for name in kept)


def test_a_stranger_can_read_the_example(transcripts: str) -> None:
    """By the rules on the page alone: check the sum, then fold."""
    _, kept, request = example()
    entries: list[Entry] = []
    for line in blocks(transcripts, "json")[0].splitlines():
        found = unseal(line.encode())
        assert found is not None
        assert found[1]
        entries.append(decode(found[0].decode(), kept.get))
    assert render(fold_entries(entries)).body() == request


def test_the_recipe_for_the_checksum_runs(transcripts: str) -> None:
    (code,) = blocks(transcripts, "python")
    space: dict[str, object] = {}
    exec(code, space)
    check = space["intact"]
    assert callable(check)
    lines = example()[0]
    assert all(check(line.encode()) for line in lines)
    assert not check(lines[0].replace("app", "apq").encode())


def test_every_record_and_every_member_is_explained(transcripts: str) -> None:
    for name, kind in NAMES.items():
        row = re.search(rf"^\| `{name}` \|(.*)$", transcripts, re.MULTILINE)
        assert row, name
        missing = [part.name for part in fields(kind) if f"`{part.name}`" not in row[1]]
        assert not missing, (name, missing)


def test_every_exit_code_is_on_the_page(root: Path) -> None:
    from reverie import errors

    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    codes = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    for code in {0, 130, *codes}:
        assert re.search(rf"^\| {code} \|", page, re.MULTILINE), code
