"""ReadBack: stored results by reference, checked against their record."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reverie.layers import per_result
from reverie.session import SessionDisk
from reverie.settings import DEFAULTS
from reverie.toolbox import ReferencedText
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    Record,
    ResultDecided,
    View,
    apply,
    block_of,
)
from reverie.wire import tool_result
from reverie.world import World
from tests.tools.kit import SESSION, Place, use

pytestmark = pytest.mark.spec("3")

TEXT = "".join(f"row {n} {'needle' if n % 1000 == 7 else 'hay'}\n" for n in range(20_000))


class NoFlags:
    def get(self, name: str) -> bool:
        return False


def grown(view: View, *records: Record) -> View:
    for record in records:
        view = apply(view, Entry(f"e{len(view.items)}{id(record)}", view.leaf, 1.0, record))
    return view


async def stored(place: Place, content: object, call: str = "toolu_1") -> ResultDecided:
    """A result that layer 1 has stored, as in a session."""
    use_block = block_of({"type": "tool_use", "id": call, "name": "Bash", "input": {}})
    view = grown(EMPTY, AssistantMessage((use_block,)))
    view = grown(view, tool_result(call, content))  # pyright: ignore[reportArgumentType]
    world = World(place.context().clock, SessionDisk(place.folder, SESSION), NoFlags(), DEFAULTS)
    (decided,) = await per_result(view, world)
    assert isinstance(decided, ResultDecided)
    place.view = grown(view, decided)
    return decided


async def test_by_id_key_and_path_with_reading_on(place: Place) -> None:
    decided = await stored(place, TEXT)
    box = place.box()
    path = place.project / SESSION / decided.path
    answers = [
        (await use(box, "ReadBack", reference=r)).text
        for r in ("toolu_1", decided.path, str(path), f"{SESSION}/{decided.path}"[37:])
    ]
    assert len(set(answers)) == 1
    assert answers[0].splitlines()[1] == "     1\trow 0 hay"
    got: list[str] = []
    offset = 1
    while True:
        text = (await use(box, "ReadBack", reference="toolu_1", offset=offset)).text
        assert len(text) <= DEFAULTS.collapse_reference * 4 + 200
        rows = text.splitlines()[1:]
        got += [r.split("\t", 1)[1] for r in rows if "\t" in r]
        if not rows[-1].startswith("[there is more"):
            break
        offset = int(rows[-1].rsplit(" ", 1)[1].rstrip("]"))
    assert got == TEXT.splitlines()
    some = await use(box, "ReadBack", reference="toolu_1", offset=5, limit=2)
    assert [r for r in some.text.splitlines() if "\t" in r] == [
        "     5\trow 4 hay",
        "     6\trow 5 hay",
    ]


async def test_a_query_gives_matching_lines_with_numbers(place: Place) -> None:
    await stored(place, TEXT)
    found = await use(place.box(), "ReadBack", reference="toolu_1", query="NEEDLE")
    assert found.text.splitlines()[1] == "     8\trow 7 needle"
    assert len(found.text.splitlines()) == 21
    none = await use(place.box(), "ReadBack", reference="toolu_1", query="nowhere")
    assert "no line holds all of nowhere" in none.text


@pytest.mark.parametrize(
    ("query", "told", "numbers"),
    [
        ("saved Commit", "lines with saved, commit", ["2"]),
        ('"commit saved"', "lines with commit saved", ["2"]),
        ('"saved commit"', "no line holds all of saved commit", []),
        ("commit branch lost", "no line holds all of commit, branch, lost", []),
    ],
)
async def test_a_query_matches_by_words(
    place: Place, query: str, told: str, numbers: list[str]
) -> None:
    text = "nothing\nThe commit saved it\nbranch\nCOMMIT on a branch\nsaved\n"
    await stored(place, text + "hay\n" * 20_000)
    found = await use(place.box(), "ReadBack", reference="toolu_1", query=query)
    assert told in found.text
    assert [r.split("\t")[0].strip() for r in found.text.splitlines() if "\t" in r] == numbers


async def test_a_file_that_was_changed_or_deleted_is_said_to_be(place: Place) -> None:
    decided = await stored(place, TEXT)
    path = place.project / SESSION / decided.path
    assert "changed" not in (await use(place.box(), "ReadBack", reference="toolu_1")).text
    path.write_text(TEXT.replace("row 0 hay", "row 0 hey"))
    changed = await use(place.box(), "ReadBack", reference="toolu_1")
    assert "was changed since" in changed.text
    assert "row 0 hey" in changed.text
    path.unlink()
    for reference in ("toolu_1", str(path), decided.path):
        gone = await use(place.box(), "ReadBack", reference=reference)
        assert gone.is_error
        assert "deleted" in gone.text


async def test_structured_and_long_lines_come_whole(place: Place) -> None:
    line = "ä" * 60_000
    await stored(place, [{"type": "text", "text": line}, {"type": "text", "text": "end"}])
    got, at = "", {"offset": 1}
    while True:
        text = (await use(place.box(), "ReadBack", reference="toolu_1", **at)).text
        rows = text.splitlines()[1:]
        got += "".join(r.split("\t", 1)[1] for r in rows if "\t" in r)
        if not rows[-1].startswith("[there is more"):
            break
        at = {k: int(v) for k, v in re.findall(r"(offset|column) (\d+)", rows[-1])}
    assert got == line + "end"


async def test_lines_have_the_numbers_of_the_file(place: Place) -> None:
    text = "short\n" + "x" * 30_000 + "\nneedle here\n" + "row\n" * 20_000
    await stored(place, text)
    found = await use(place.box(), "ReadBack", reference="toolu_1", query="needle")
    assert found.text.splitlines()[1] == "     3\tneedle here"
    third = await use(place.box(), "ReadBack", reference="toolu_1", offset=3, limit=1)
    assert third.text.splitlines()[1] == "     3\tneedle here"
    within = await use(
        place.box(), "ReadBack", reference="toolu_1", offset=2, column=29_991, limit=1
    )
    assert within.text.splitlines()[1] == "     2+\t" + "x" * 10


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "nope",
        "../../../../etc/passwd",
        "/etc/passwd",
        "tool-results/../../x",
        "~/.ssh/id_rsa",
        "tool-results",
        "a\0b",
        "x" * 10_000,
        "<project>/other.jsonl",
        "<project>/memory/tool-results/../m.md",
        "<project>-evil/tool-results/x.txt",
        "<project>/memory/tool-results/link.txt",
    ],
)
async def test_only_stored_results_are_read(place: Place, reference: str) -> None:
    (place.project / "other.jsonl").write_text("secret")
    (place.memory / "tool-results").mkdir()
    (place.outside / "x").write_text("secret")
    (place.memory / "tool-results" / "link.txt").symlink_to(place.outside / "x")
    (place.memory / "m.md").write_text("secret")
    found = await use(
        place.box(), "ReadBack", reference=reference.replace("<project>", str(place.project))
    )
    assert found.is_error
    assert "secret" not in found.text
    assert "root:" not in found.text


async def test_a_copied_session_reads_what_its_source_stored(place: Place) -> None:
    decided = await stored(place, TEXT)
    other = "99999999-2222-4333-8444-555555555555"
    context = place.context()
    assert context.stored is not None
    copy = replace(context.stored, session=other)
    found = await use(place.box(stored=copy), "ReadBack", reference=decided.call)
    assert "row 0 hay" in found.text
    assert "changed" not in found.text


async def test_other_sources_and_private_sessions(place: Place) -> None:
    class Sealed:
        async def find(self, reference: str) -> ReferencedText | None:
            return (
                ReferencedText("sealed 1", "what was said\nneedle", "old")
                if reference == "s1"
                else None
            )

    box = place.box(stored=None, sources=(Sealed(),))
    assert (await use(box, "ReadBack", reference="s1", query="needle")).text == (
        "[sealed 1: old; lines with needle]\n     2\tneedle"
    )
    assert (await use(box, "ReadBack", reference="toolu_1")).is_error


async def test_a_spooled_output_can_be_read_back_by_its_path(place: Place) -> None:
    box = place.box()
    line = "head -c 11000000 /dev/zero | tr '\\0' x; echo; echo needle"
    said = await use(box, "Bash", command=line)
    (kept,) = place.results.iterdir()
    assert str(kept) in said.text
    found = await use(box, "ReadBack", reference=str(kept), query="needle")
    assert found.text.endswith("\tneedle")
