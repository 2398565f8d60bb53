"""What folded parts keep: state without a model, bounded at any length, all of it read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reverie.layers import FOLDED
from reverie.store import Folder
from reverie.testing import call
from reverie.toolbox import SealedCalls
from reverie.transcript import REFERENCE, block_of, reference, text_block
from tests.layers.running import COLLAPSE, Running, result, round_lines

pytestmark = pytest.mark.spec("19.state")
SMALL = replace(COLLAPSE, collapse_tail=1_000, collapse_kept=100, collapse_log=600)


def tool_result(ident: str, text: str, *, failed: bool = False):
    value = {"type": "tool_result", "tool_use_id": ident, "content": text}
    return block_of({**value, "is_error": True} if failed else value)


async def worked(going: Running) -> None:
    """Edits, one of which fails twice, a test run, and a question that nobody answered."""
    await going.add(text_block("Fix the cache. Which tests cover it?"))
    edit = {"file_path": "/srv/app/src/cache.py", "old_string": "a", "new_string": "b"}
    for n, failed in enumerate((False, True, True)):
        await going.answer((call("Edit", f"e{n}", **edit),))
        text = "String to replace not found in file." if failed else "updated"
        await going.add(tool_result(f"e{n}", text, failed=failed), origin="tool")
    await going.answer((call("Write", "w1", file_path="/srv/app/doc/new.md", content="x"),))
    await going.add(result("w1", "written"), origin="tool")
    await going.answer((call("Bash", "b1", command="pytest tests/"),))
    text = "Exit code 1\nE   KeyError: 'size'\n=== 6 failed, 16 passed in 2.10s ==="
    await going.add(tool_result("b1", text, failed=True), origin="tool")
    await going.add(text_block("Stop. Do the documentation instead."))


async def test_a_part_tells_what_changed_failed_passed_and_was_left_open():
    going = Running(SMALL)
    await worked(going)
    await going.rounds(["more " * 100] * 40, "go on")
    parts = [i for i in going.view.items if i.reason == FOLDED]
    (head, *state) = parts[0].pieces[-1].block.text.split("\n")
    edit, run = reference("e2"), reference("b1")
    assert head.startswith("[folded ")
    edited = f"Edit cache.py (String to replace not found in file) {edit} 00:16 (2)"
    assert state[:5] == [
        "Changed: in /srv/app/src: cache.py; in /srv/app/doc: new.md.",
        "Not committed by then: no commit seen.",
        f"Failed: {edited}, Bash pytest tests/ (Exit code 1: E KeyError: 'size') {run} 00:16.",
        f"Last test runs: pytest tests/ failed: 6 failed, 16 passed in 2.10s {run} 00:16.",
        "Asked and not answered: Which tests cover it?.",
    ]


async def test_a_question_that_anybody_came_back_to_is_not_open():
    going = Running(SMALL)
    await worked(going)
    await going.answer((text_block("As to the tests that cover it: test_cache.py."),))
    await going.rounds(["more " * 100] * 40, "go on")
    part = next(s for s in going.seals() if s.reason == FOLDED)
    assert "Asked and not answered" not in part.by[0].blocks[-1].text


async def test_what_failed_and_went_well_later_says_so_and_each_command_has_its_run():
    going = Running(SMALL)
    await going.add(text_block("go"))
    ran = [
        ("b1", "make test", "Exit code 2\n3 failed, 1 passed", True),
        ("b2", "make lint 2>&1 | tail -3", "src ok\n0 issues.", False),
        ("b6", "npm test | tail -3", "x ok\nTests:  2 failed, 5 passed", False),  # piped
        ("b7", "go test ./...", "ok  \ta/b\t0.1s\nok  \ta/c\t(cached)", False),
        ("b3", "make test", "4 passed", False),
        ("b4", "git commit -m x", "[main 1a2b3c4] Keep the size\n 1 file changed", False),
        ("b5", "git push", "To host:x.git\n   0b2b3c4..1a2b3c4  main -> main", False),
    ]
    part = await folded_commands(going, ran)
    npm = f"Bash npm test (Tests: 2 failed 5 passed) {reference('b6')} 00:16"
    assert f"Failed: Bash make test (Exit code 2: 3 failed 1 passed) later ok, {npm}.\n" in part
    assert f"go test ./... passed: 2 packages ok {reference('b7')} 00:16; " in part
    assert f"make test passed: 4 passed {reference('b3')} 00:16.\n" in part
    pushed = "pushed 0b2b3c4..1a2b3c4 to main"
    assert f"Commits and pushes: commit 1a2b3c4 on main: Keep the size; {pushed}.\n" in part


async def folded_commands(going: Running, ran: list[tuple[str, str, str, bool]]) -> str:
    """The part in which these commands fold."""
    for ident, command, text, bad in ran:
        await going.answer((call("Bash", ident, command=command),))
        await going.add(tool_result(ident, text, failed=bad), origin="tool")
    await going.rounds(["more " * 100] * 40, "go on")
    return next(s for s in going.seals() if s.reason == FOLDED).by[0].blocks[-1].text


async def test_success_of_another_file_or_command_is_not_a_later_ok():
    going = Running(SMALL)
    await going.add(text_block("go"))
    for folder, failed in (("one", True), ("two", False)):
        await going.answer((call("Read", folder, file_path=f"/srv/{folder}/x.go"),))
        await going.add(tool_result(folder, "File does not exist.", failed=failed), origin="tool")
    test = "go test ./cmd/some/long/package/path/cli -run "
    ran = [("b1", f"{test}TestA", "Exit code 1\n--- FAIL: TestA", True)]
    part = await folded_commands(going, [*ran, ("b2", f"{test}TestB", "ok  \tcli\t0.1s", False)])
    assert "Failed: Read x.go (File does not exist) r:" in part
    assert "(Exit code 1: --- FAIL: TestA) r:" in part
    assert "later ok" not in part


async def test_a_part_tells_what_is_not_committed_and_not_pushed():
    going = Running(SMALL)
    await going.add(text_block("go"))
    for n, name in enumerate(("old.py", "new.py")):
        await going.answer((call("Edit", f"e{n}", file_path=f"/srv/{name}", new_string="b"),))
        await going.add(tool_result(f"e{n}", "updated"), origin="tool")
        if name == "old.py":
            await going.answer((call("Bash", "c1", command="git commit -m x"),))
            await going.add(result("c1", "[main 1a2b3c4] Keep the size"), origin="tool")
    status = "On branch main\nYour branch is ahead of 'origin/main' by 2 commits.\n  (use git)"
    notes = "## Notes...\nfix 3 failing tests"
    ran = [("s1", "git status", status, False), ("s2", "git log | head", notes, False)]
    part = await folded_commands(going, ran)
    assert "Not committed by then: new.py.\n" in part
    commit = "commit 1a2b3c4 on main: Keep the size; status: ahead of origin by 2 commits"
    assert f"Commits and pushes: {commit}; no push seen after it.\n" in part
    assert "Failed" not in part
    assert "Last test runs" not in part


async def test_a_part_keeps_what_was_said_before_a_change_and_after_a_failure():
    going = Running(SMALL)
    await going.add(text_block("go"))
    said = [
        ("I'll look at the files of the plan first.", "Read", {"file_path": "/a.py"}, False),
        ("Older words on the very same file.", "Edit", {"file_path": "/b.py"}, False),
        ("I'll skip the commit and write it to a file.", "Edit", {"file_path": "/b.py"}, True),
        ("The lock is stale, so let me remove it.", "Bash", {"command": "rm .lock"}, False),
        ("Let me look.", "Edit", {"file_path": "/c.py"}, False),
    ]
    for n, (text, tool, given, failed) in enumerate(said):
        written = {"new_string": "b"} if tool == "Edit" else {}
        await going.answer((text_block(text), call(tool, f"t{n}", **given, **written)))
        await going.add(tool_result(f"t{n}", "fatal: locked", failed=failed), origin="tool")
    part = await folded_commands(going, [])
    kept = [line for line in part.split("\n") if line.startswith("- ")]
    assert kept == [f"- {said[n][0]}" for n in (2, 3)]


async def test_a_cut_answer_keeps_its_list():
    options = [f"{n}. Option {n} with engine_{n}: " + "for a reason " * 20 for n in range(1, 4)]
    answer = "There are three ways.\n\n" + "\n".join(options) + "\n\nWhich one?"
    going = Running(SMALL)
    await going.add(text_block("How?"))
    await going.answer((text_block(answer),))
    await going.rounds(["more " * 100] * 20, "we have to see the others too " * 7)
    await going.rounds(["more " * 100] * 40, "go on with the others and tell me then")
    text = going.text()
    assert answer not in text
    assert all(f"{n}. Option {n} with engine_{n}: for a reason" in text for n in range(1, 4))
    assert "There are three ways." in text
    assert "Which one?" in text


async def test_joined_parts_keep_the_references_of_their_calls():
    going = Running(SMALL)
    for n in range(12):
        await going.add(text_block(f"step {n}"))
        for name in ("one", "two"):
            ident, path = f"{name}{n}", f"/srv/app/src/{name}.py"
            await going.answer((call("Edit", ident, file_path=path, new_string="b"),))
            await going.add(result(ident, "updated " * 40), origin="tool")
        await going.rounds(["more " * 100] * 6, "go on")
    first = next(i for i in going.view.items if i.reason == FOLDED).pieces[-1].block.text
    assert "\n/srv/app/src/one.py *r:" in first
    assert " older)\n" in first


async def test_lines_on_a_line_are_the_newest_and_failures_are_marked():
    going = Running(SMALL)
    await going.add(text_block("go"))
    for n in range(9):
        text = "no match" if n == 8 else "updated"
        await going.answer((call("Edit", f"e{n}", file_path="/a.py", new_string="b"),))
        await going.add(tool_result(f"e{n}", text, failed=n == 8), origin="tool")
    await going.rounds(["more " * 100] * 40, "go on")
    part = next(s for s in going.seals() if s.reason == FOLDED)
    newest = " ".join(f"*{reference(f'e{n}')}" for n in (6, 7))
    assert f"/a.py {newest} !{reference('e8')} (6 older)" in part.by[0].blocks[-1].text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "Exit code 2\nsrc/a.go:3:1: undefined: Store\nsrc/b.go:9:4: undefined: Load\nexit",
            [
                "  ! Exit code 2: src/a.go:3:1: undefined: Store",
                "  ! src/b.go:9:4: undefined: Load",
                "  = exit",
            ],
        ),
        ("Exit code 1\nnothing to say", ["  ! Exit code 1: nothing to say", "  = nothing to say"]),
        ("", ["  ! failed"]),
    ],
)
def test_a_failed_call_keeps_its_code_and_the_telling_lines(text: str, lines: list[str]):
    sealed = round_lines("Bash", {"command": "make"}, text, is_error=True)
    assert [line for line in sealed if line[:4] in ("  ! ", "  = ")] == lines


def test_an_answer_keeps_its_beginning_and_its_end_between_words():
    from reverie.layers import excerpt

    text = "It is done in " + "many words " * 100 + "Shall I remove attribution_cache.go as well?"
    shown = excerpt(text, 300)
    assert shown.startswith("It is done in many words")
    assert shown.endswith(" Shall I remove attribution_cache.go as well?")
    assert len(shown) <= 303
    assert all(word in {*text.split(), "…"} for word in shown.split())


def test_an_excerpt_has_ends_items_and_headings_with_what_is_under_them():
    from reverie.layers import excerpt

    items = [f"{n}. tool_{n} – checks the part {n} of it, {'and more ' * 30}" for n in range(1, 6)]
    code = "```\n" + "x = 1\n" * 200 + "```"
    text = "\n".join(
        [
            "All is done. It took a while.",
            "## Cause",
            "",
            "The cache was stale.",
            code,
            *items,
            "Go on?",
        ]
    )
    first, cause, *listed, last = excerpt(text, 300).split("\n")
    assert (first, cause, last) == ("All is done. …", "Cause: The cache was stale. …", "Go on?")
    for n, line in enumerate(listed, 1):
        assert line.startswith(f"{n}. tool_{n} – checks the part {n} of it")
        assert len(line) < 120
    assert len(listed) == 5
    assert len(excerpt("# " + "long " * 9_000 + "\n" + "a:\n" * 9_000, 300)) < 900


async def test_the_sealed_part_is_bounded_at_any_length():
    settings = replace(COLLAPSE, collapse_tail=4_000, collapse_kept=500)
    going = Running(settings)
    sizes: list[int] = []
    for n in range(60):
        order = f"Never touch vendor_{n:03}.py." if n % 10 == 0 else "And go on with the next one."
        said = f"Number {n} of the list, in words that fill the line. {order} " + "please " * 60
        await going.rounds([f"line_{n} " + "more " * 400] * 14, said)
        await going.answer((text_block(f"Done with number {n}. " + "It works. " * 60),))
        view = going.view
        sizes.append(sum(i.tokens for i in view.items[: view.live]))
    assert max(sizes) <= 14_000
    assert max(sizes[-20:]) <= 1.3 * max(sizes[15:35])
    text = going.text()
    assert all(f"Never touch vendor_{n:03}.py." in text for n in range(0, 60, 10))
    assert "please " * 60 in text  # the newest words are whole
    assert text.count("please " * 60) < 60


async def test_a_parts_reference_reads_its_rounds_and_pictures_come_as_pictures(tmp_path: Path):
    going = Running(SMALL)
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "x"},
    }
    await going.add(text_block("Look"), block_of(picture))
    await going.answer((text_block("One moment"), call("Read", "t1", file_path="/shot.png")))
    content = [{"type": "text", "text": "a shot"}, picture]
    value = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    await going.add(block_of(value), origin="tool")
    await going.rounds(["more " * 100] * 40, "go on")
    part = next(i for i in going.view.items if i.reason == FOLDED)
    source = SealedCalls(lambda: going.view, Folder(tmp_path), "s")
    whole = await source.find(REFERENCE.findall(part.pieces[-1].block.text)[0])
    assert whole is not None
    assert f"[call {reference('t1')}] Read" in whole.text
    assert "[user]\nLook" in whole.text
    assert "a shot" in whole.text
    for name in (reference("t1"), reference(going.view.entries[0].id)):
        found = await source.find(name)
        assert found is not None
        assert found.media == (picture,)
