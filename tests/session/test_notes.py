"""Session notes in a real session: one fork at a time, one file, the user's word first."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.embedded import EmbeddedModel
from reverie.errors import ProviderError
from reverie.layers import frame, template
from reverie.session import ROUNDS, Session, update
from reverie.settings import DEFAULTS
from reverie.store import digest, session_folder
from reverie.testing import ScriptedModel, call, reply
from reverie.toolbox import standard
from reverie.transcript import Block, Failed, ForkEnded, NotesTaken, NotesTask, Replaced
from reverie.wire import Reply, Request, user
from reverie.world import Capabilities, Notice

from .doors import opened

pytestmark = pytest.mark.spec("5")
TOOLS = standard().definitions()
# the policy whose compactions need notes, from early on
CLASSIC = replace(DEFAULTS, context_policy="classic", notes_first_tokens=9_999)
LONG = "words of the user " * 2_400  # more than 10,000 tokens
STATE = "_What is in hand, what is pending, the steps that come next_\n"
TITLE = "_Five to ten words by which it is known again_\n"
Answering = Callable[[NotesTask, Request], "str | Reply | Sequence[dict[str, Any]] | Exception"]


def edit(task: NotesTask, old: str, new: str, ident: str = "") -> Block:
    name = ident or f"n{abs(hash((old, new))) % 10**9}"
    return call("Edit", name, file_path=task.path, old_string=old, new_string=new)


def noting(task: NotesTask, request: Request) -> Reply:
    """Two sections, in one answer."""
    count = str(request.count)
    known = task.notes.partition(STATE)[2].partition("\n")[0]
    state = edit(task, STATE + known, f"{STATE}Message {count} was the last.")
    if "Mending" in task.notes:
        return reply(state)
    return reply(edit(task, TITLE, f"{TITLE}Mending the login of the shop\n"), state)


@dataclass
class Desk:
    """A session whose notes are written by a function, and what was said meanwhile."""

    home: Path
    project: Path
    answering: Answering = noting
    told: list[Notice] = field(default_factory=list[Notice])
    tasks: list[NotesTask] = field(default_factory=list[NotesTask])

    def __post_init__(self) -> None:
        self.project.mkdir(exist_ok=True)
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: Request):
        assert isinstance(request.task, NotesTask)
        self.tasks.append(request.task)
        return self.answering(request.task, request)

    def open(self, **parts: Any) -> AbstractAsyncContextManager[Session]:
        known = {
            "model": self.model,
            "tools": TOOLS,
            "say": self.told.append,
            "settings": CLASSIC,
        }
        return opened(self.home, self.project, **{**known, **parts})

    def said(self) -> str:
        return "\n".join(n.text for n in self.told)


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Desk:
    return Desk(home, tmp_path / "work")


def path_of(s: Session) -> Path:
    return session_folder(s.library.folder.root, s.id) / "session-memory/summary.md"


async def says(s: Session, words: str, *answer: str | Block) -> None:
    """One round, and the work behind it done."""
    await s.add(user(words))
    await s.prepare()
    await s.observe(reply(*(answer or ("Understood.",))))
    await s.jobs.wait("session_memory", 10)
    await s.flush()


def records(s: Session, kind: type) -> list[Any]:
    return [e.record for e in s.view.entries if isinstance(e.record, kind)]


def short(task: NotesTask, request: Request) -> Reply:
    """As the prompt allows: the file's bare name, and the last words of a line."""
    del task, request
    words = "the steps that come next_"
    given = {"old_string": words, "new_string": f"{words}\nThe login is mended."}
    return reply(call("Edit", "n1", file_path="summary.md", **given))


async def test_the_name_of_the_file_and_the_end_of_a_line_are_enough(desk: Desk):
    desk.answering = short
    async with desk.open() as s:
        await says(s, LONG)
        assert f"{STATE}The login is mended.\n" in path_of(s).read_text()
        assert records(s, NotesTaken)


async def test_the_first_update_makes_the_file_and_says_what_it_covers(desk: Desk):
    async with desk.open() as s:
        await says(s, "hello")
        assert not desk.tasks
        assert not path_of(s).exists()
        await says(s, LONG)
        (task,) = desk.tasks
        (taken,) = records(s, NotesTaken)
        text = path_of(s).read_text()
    assert task.notes == template()
    assert (task.path, task.since) == (str(path_of(s)), "")
    assert (task.section_tokens, task.total_tokens) == (2_000, 12_000)
    assert "Mending the login" in text
    assert frame(text) == frame(template())
    assert taken.last == s.view.leaf
    assert taken.tokens == s.view.estimated
    assert taken.sha256 == digest(text.encode())
    assert oct(path_of(s).stat().st_mode & 0o777) == "0o600"


async def test_the_update_is_one_fork_on_the_parents_prefix_with_the_notes_in_its_prompt(
    desk: Desk,
):
    async with desk.open() as s:
        await says(s, LONG, "Looking.", call("Bash", "t1", command="ls"))
        assert s.last_request is not None
        (asked,) = desk.model.requests
        assert asked.difference(s.last_request) is None
        (ended,) = records(s, ForkEnded)
    assert (asked.source, ended.source, ended.outcome) == ("session_memory",) * 2 + ("completed",)
    assert ended.requests == 1  # every edit was made: nothing is asked again
    assert asked.head.tools == s.last_request.head.tools
    prompt = asked.at(asked.count - 1).pieces[-1].block.text
    assert template() in prompt
    assert f"`{path_of(s).name}`" in prompt
    assert str(path_of(s)) not in prompt  # the name is enough, and shorter


async def test_later_updates_start_from_what_the_notes_cover(desk: Desk):
    async with desk.open() as s:
        await says(s, LONG)
        covered = s.view.leaf
        await says(s, "short")
        assert len(desk.tasks) == 1
        await says(s, LONG[:24_000])
        assert len(desk.tasks) == 2
        assert desk.tasks[1].since == covered
        assert "Mending" in desk.tasks[1].notes
        assert len(records(s, NotesTaken)) == 2


async def test_only_edit_and_only_on_the_notes(desk: Desk):
    def trying(task: NotesTask, request: Request) -> Reply:
        other = replace(task, path=str(desk.project / "code.py"))
        if len(desk.tasks) == 1:
            return reply(
                call("Bash", "a", command="touch x"),
                call("Write", "b", file_path=task.path, content="mine"),
                call("Read", "c", file_path=task.path),
                edit(other, STATE, f"{STATE}x", "d"),
                edit(replace(task, path=task.path + ".bak"), STATE, f"{STATE}x", "e"),
                edit(task, TITLE, TITLE + "A title\n", "f"),
            )
        results = [b.value for m in [request.at(request.count - 1)] for b in map(_block, m.pieces)]
        assert [r.get("is_error", False) for r in results] == [True] * 5 + [False]
        return reply("Then not.")

    desk.answering = trying
    (desk.project / "code.py").write_text("a")
    async with desk.open() as s:
        await says(s, LONG)
        assert "2 edits could not be made" in desk.said()  # they went elsewhere
        assert (desk.project / "code.py").read_text() == "a"
        assert path_of(s).read_text() == template().replace(TITLE, TITLE + "A title\n")
        assert sorted(p.name for p in path_of(s).parent.iterdir()) == ["summary.md"]


def _block(piece: Any) -> Block:
    return piece.block


async def test_a_denied_tool_does_not_spoil_the_edits(desk: Desk):
    def trying(task: NotesTask, request: Request) -> Reply:
        if len(desk.tasks) > 1:
            return reply("Done.")
        return reply(call("Read", "c", file_path=task.path), edit(task, TITLE, TITLE + "A title\n"))

    desk.answering = trying
    async with desk.open() as s:
        await says(s, LONG)
        assert len(desk.tasks) == 2
        assert "A title" in path_of(s).read_text()
        assert records(s, NotesTaken)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Learnings\n", "# Lessons\n"),
        (TITLE, "_Another line_\n"),
        ("# Worklog", "# More\n\n# Worklog"),
        (STATE, ""),
    ],
)
async def test_an_edit_of_a_heading_or_its_line_is_undone(desk: Desk, old: str, new: str):
    def breaking(task: NotesTask, request: Request) -> Reply:
        if len(desk.tasks) == 1:
            return reply(edit(task, old, new), edit(task, STATE, f"{STATE}In hand.\n"))
        assert "was undone" in request.at(request.count - 1).pieces[0].block.text
        return reply(edit(task, TITLE, f"{TITLE}A title\n"))

    desk.answering = breaking
    async with desk.open() as s:
        await says(s, LONG)
        text = path_of(s).read_text()
        assert frame(text) == frame(template())
        assert "A title" in text
        assert "In hand." in text
        assert records(s, NotesTaken)


async def test_edits_that_never_fit_leave_the_notes_as_they_were(desk: Desk):
    desk.answering = lambda task, _: reply(edit(task, "not there", "x", f"i{len(desk.tasks)}"))
    async with desk.open() as s:
        await says(s, LONG)
        assert len(desk.tasks) == ROUNDS
        assert path_of(s).read_text() == template()
        assert not records(s, NotesTaken)
        (failed,) = records(s, Failed)
        assert failed.layer == "session_memory"
        (ended,) = records(s, ForkEnded)
        assert ended.outcome == "failed"


async def test_one_edit_that_does_not_fit_leaves_the_others_standing(desk: Desk):
    def answer(task: NotesTask, _: Request) -> Reply:
        again = f"{len(desk.tasks)}"
        wrong = edit(task, "not there", "x", f"i{again}")
        if len(desk.tasks) > 1:
            return reply(wrong)
        return reply(edit(task, STATE, STATE + "In hand.\n", "j"), wrong)

    desk.answering = answer
    async with desk.open() as s:
        await says(s, LONG)
        assert "In hand." in path_of(s).read_text()
        assert len(records(s, NotesTaken)) == 1
        assert not records(s, Failed)
        assert "1 edit could not be made" in desk.said()


TRIED = {
    "refused": [("not there", "x")],
    "undone": [("# Learnings\n", "# Lessons\n")],
    "entitled": [(TITLE, f"{TITLE}A title\n"), ("not there", "x")],
    "noted": [("# Worklog", "- a step\n\n# Worklog")],
}


@pytest.mark.parametrize(
    ("rounds", "covers"),
    [
        ("said", True),
        ("elsewhere said", True),
        ("refused said", False),
        ("undone said", False),
        ("refused elsewhere said", False),
        ("entitled said", False),
        ("entitled refused said", False),
        ("refused noted", True),
    ],
)
async def test_notes_cover_what_an_edit_wrote_or_what_is_nothing_new(
    desk: Desk, rounds: str, covers: bool
):
    def answer(task: NotesTask, _: Request) -> Reply:
        tried = next(asked)
        if tried == "elsewhere":
            return reply(call("Read", "r", file_path=task.path))
        edits = [edit(task, *words) for words in TRIED.get(tried, ())]
        return reply(*edits) if edits else reply("There is nothing new.")

    asked = iter(rounds.split())
    async with desk.open() as s:
        await says(s, LONG, "Understood.")
        first = records(s, NotesTaken)[-1].last
        path_of(s).write_text(path_of(s).read_text().replace("Mending the login of the shop\n", ""))
        desk.answering = answer
        await says(s, LONG)
        taken = records(s, NotesTaken)
        assert [one.last for one in taken] == [first, *([s.view.leaf] if covers else [])]
        assert len(records(s, Failed)) == (not covers)


async def test_a_title_replaces_no_message(desk: Desk):
    def entitled(task: NotesTask, _: Request) -> Reply:
        return reply(edit(task, TITLE, f"{TITLE}A title {len(desk.tasks)}\n"))

    desk.answering = entitled
    async with desk.open() as s:
        for _ in range(12):
            await says(s, LONG)
        assert "A title 1\n" in path_of(s).read_text()
        assert all(task.since == "" for task in desk.tasks)
        assert not [one for one in records(s, Replaced) if one.reason == "session_memory"]


@pytest.mark.parametrize(("stop", "taken"), [("end_turn", 2), ("max_tokens", 1), ("refusal", 1)])
async def test_nothing_to_change_is_an_outcome(desk: Desk, stop: str, taken: int):
    async with desk.open() as s:
        await says(s, LONG)
        before = path_of(s).read_text()
        desk.answering = lambda task, _: replace(reply("Nothing to change."), stop_reason=stop)
        await says(s, LONG)
        assert path_of(s).read_text() == before
        assert len(records(s, NotesTaken)) == taken
        assert len(records(s, Failed)) == 2 - taken


@pytest.mark.parametrize("answer", ["I have nothing to add.", ProviderError("overloaded")])
async def test_a_failed_update_records_its_failure_alone_and_is_tried_again(
    desk: Desk, answer: str | Exception
):
    desk.answering = lambda task, request: answer
    async with desk.open() as s:
        await says(s, LONG)
        assert not records(s, NotesTaken)
        assert [f.layer for f in records(s, Failed)] == ["session_memory"]
        assert "background work stopped" in desk.said()
        desk.answering = noting
        await says(s, "short")
        assert len(records(s, NotesTaken)) == 1
        assert "Mending" in path_of(s).read_text()


async def test_an_update_never_overlaps_another(desk: Desk):
    model = Gated(desk._answer)
    model.gate = anyio.Event()
    async with desk.open(model=model) as s:
        for _ in range(4):
            await s.add(user(LONG))
            await s.prepare()
            await s.observe(reply("Understood."))
            await anyio.wait_all_tasks_blocked()
        assert s.jobs.running == ("session_memory",)
        model.gate.set()
        await s.jobs.wait("session_memory", 10)
        await s.flush()
        assert len(records(s, NotesTaken)) == len(desk.tasks) == 1


async def test_a_users_edit_meanwhile_wins_and_both_stay_where_they_fit(desk: Desk):
    def meanwhile(task: NotesTask, request: Request) -> Reply:
        path = Path(task.path)
        path.write_text(path.read_text().replace("# Worklog", "My own line.\n\n# Worklog"))
        return noting(task, request)

    desk.answering = meanwhile
    async with desk.open() as s:
        await says(s, LONG)
        text = path_of(s).read_text()
        (taken,) = records(s, NotesTaken)
    assert "My own line." in text
    assert "Mending the login" in text
    assert taken.sha256 == digest(text.encode())


@pytest.mark.parametrize("change", ["replaced", "deleted", "a folder", "a link"])
async def test_a_users_edit_that_leaves_no_room_for_ours_stands(
    desk: Desk, tmp_path: Path, change: str
):
    outside = tmp_path / "outside.md"
    outside.write_text("not ours")

    def meanwhile(task: NotesTask, request: Request) -> Reply:
        path = Path(task.path)
        path.unlink()
        if change == "replaced":
            path.write_text("# Mine\nall of it\n")
        elif change == "a folder":
            path.mkdir()
        elif change == "a link":
            os.symlink(outside, path)
        return noting(task, request)

    desk.answering = meanwhile
    async with desk.open() as s:
        await says(s, LONG)
        path = path_of(s)
        assert not records(s, NotesTaken)
        assert len(records(s, Failed)) == 1
        if change == "replaced":
            assert path.read_text() == "# Mine\nall of it\n"
        assert outside.read_text() == "not ours"
        assert path.exists() is (change != "deleted")


@pytest.mark.parametrize("kind", ["a folder", "a link", "ten megabytes"])
async def test_a_file_that_cannot_be_used_is_said_and_costs_nothing(
    desk: Desk, tmp_path: Path, kind: str
):
    outside = tmp_path / "outside.md"
    outside.write_text("# Mine\n")
    async with desk.open() as s:
        path = path_of(s)
        path.parent.mkdir(parents=True)
        if kind == "a folder":
            path.mkdir()
        elif kind == "a link":
            os.symlink(outside, path)
        else:
            path.write_text("# Worklog\n" + "- a step\n" * 1_200_000)
        size = path.stat().st_size
        for _ in range(5):
            await says(s, LONG[:8_000])
        assert not desk.tasks
        assert 1 <= len(records(s, Failed)) <= 3
        assert "the file" in desk.said() or "It is" in desk.said() or "bytes" in desk.said()
        assert path.stat().st_size == size
        assert outside.read_text() == "# Mine\n"


@pytest.mark.parametrize("text", ["", " \n\n", None])
async def test_notes_that_were_deleted_or_emptied_begin_again(desk: Desk, text: str | None):
    async with desk.open() as s:
        await says(s, LONG)
        path_of(s).unlink()
        if text is not None:
            path_of(s).write_text(text)
        await says(s, LONG)
        assert desk.tasks[1].notes == template()
        assert desk.tasks[1].since == ""
        assert "Mending" in path_of(s).read_text()


async def test_headings_that_the_user_removed_stay_removed(desk: Desk):
    desk.answering = lambda task, _: reply(
        edit(task, "One thing.", f"One thing. Two things ({len(desk.tasks)}).")
    )
    async with desk.open() as s:
        path_of(s).parent.mkdir(parents=True)
        path_of(s).write_text("One thing.\n")
        await says(s, LONG)
        assert path_of(s).read_text() == "One thing. Two things (1).\n"
        assert records(s, NotesTaken)


async def test_a_template_and_a_prompt_of_the_users_own(desk: Desk):
    config = desk.home / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_text("# Fall\n_Worum es geht_\n{{notesPath}}\n")
    (config / "prompt.md").write_text("Schreibe nach {{notesPath}}:\n{{currentNotes}}ENDE")
    desk.answering = lambda task, _: reply(edit(task, "geht_\n", "geht_\nEin Fall\n"))
    async with desk.open() as s:
        await says(s, LONG)
        prompt = desk.model.requests[0].at(desk.model.requests[0].count - 1).pieces[-1].block.text
        assert prompt.startswith(
            f"Schreibe nach {path_of(s)}:\n# Fall\n_Worum es geht_\n{{{{notesPath}}}}\nENDE"
        )
        assert path_of(s).read_text() == "# Fall\n_Worum es geht_\nEin Fall\n{{notesPath}}\n"


@pytest.mark.parametrize("given", ["free text, no heading", "", "x" * 200_000, b"\xff\xfe", None])
async def test_a_template_that_is_odd_or_cannot_be_used(desk: Desk, given: str | bytes | None):
    config = desk.home / "session-memory" / "config"
    config.mkdir(parents=True)
    place = config / "template.md"
    if given is None:
        place.mkdir()
    else:
        place.write_bytes(given if isinstance(given, bytes) else given.encode())
    usable = given == "free text, no heading"
    if usable:
        desk.answering = lambda task, _: reply(edit(task, "heading", "heading\nA note."))
    async with desk.open() as s:
        await says(s, LONG)
        text = path_of(s).read_text()
        assert records(s, NotesTaken)
    assert text == "free text, no heading\nA note." if usable else "Mending" in text
    assert ("is not used, ours is" in desk.said()) is (given not in ("", "free text, no heading"))


async def test_a_library_session_without_an_edit_tool_gets_its_notes_in_words(desk: Desk):
    desk.answering = lambda task, _: (
        "<notes>\n# Session Title\nMending the login\n\n# Current State\nAll green.\n</notes>"
    )
    async with desk.open(tools=[]) as s:
        await says(s, LONG)
        (asked,) = desk.model.requests
        assert asked.head.tools == "[]"
        assert "answer in words" in asked.at(asked.count - 1).pieces[-1].block.text
        text = path_of(s).read_text()
        assert frame(text) == frame(template())
        assert "\nMending the login\n" in text
        assert "\nAll green.\n" in text
        assert records(s, NotesTaken)


async def test_a_model_without_tools_is_sent_none_and_writes_notes_in_words(desk: Desk):
    """Neither tool definitions nor results: the conversation abridged, and the notes."""
    desk.answering = lambda task, _: (
        "<notes>\n# Session Title\nMending the login\n\n# Current State\nAll green.\n</notes>"
    )
    desk.model = ScriptedModel(desk._answer, capabilities=Capabilities(tools=False))
    async with desk.open() as s:
        await says(s, LONG)
        assert "All green." in path_of(s).read_text()
    (asked,) = desk.model.requests
    assert asked.head.tools == "[]"
    assert asked.count == 1
    told = asked.at(0).pieces[-1].block.get("text")
    assert LONG.strip() in told
    assert "answer in words" in told


async def test_an_answer_in_words_with_a_section_of_its_own_is_not_taken(desk: Desk):
    desk.answering = lambda task, _: "<notes>\n# Current State\nx\n\n# Mine\ny\n</notes>"
    async with desk.open(tools=[]) as s:
        await says(s, LONG)
        assert path_of(s).read_text() == template()
        assert not records(s, NotesTaken)


async def test_a_session_without_a_model_a_private_one_and_a_bare_one_take_no_notes(desk: Desk):
    for parts in (
        {"model": "m1"},
        {"private": True},
        {"settings": replace(CLASSIC, simple=True)},
        {"settings": replace(CLASSIC, auto_compact_enabled=False)},
        {"environ": {"HOME": "/x", "REVERIE_FLAG_SESSION_MEMORY": "off"}},
    ):
        async with desk.open(**parts) as s:
            await says(s, LONG)
            assert not s.jobs.running
            assert not records(s, Failed)
            assert not path_of(s).exists()
    assert not desk.tasks


async def test_the_days_budget_stops_it_and_it_says_so(desk: Desk):
    tight = replace(CLASSIC, background_calls_per_day=0)
    async with desk.open(settings=tight) as s:
        for _ in range(6):
            await says(s, "short" if records(s, Failed) else LONG)
        assert not desk.tasks
        assert "calls" in desk.said()
        assert len(records(s, Failed)) == 3  # then it waits for the conversation to grow


async def test_a_resumed_session_goes_on_with_its_notes(desk: Desk):
    async with desk.open() as s:
        await says(s, LONG)
        ident, covered = s.id, s.view.leaf
    async with desk.open(resume=ident, prefix="later") as s:
        await says(s, "short")
        assert len(desk.tasks) == 1
        await says(s, LONG)
        assert desk.tasks[1].since == covered


class Gated(ScriptedModel):
    """Answers no notes task while the gate is shut."""

    gate: anyio.Event | None = None

    async def stream(self, request: Request):
        if self.gate is not None and isinstance(request.task, NotesTask):
            await self.gate.wait()
        async for event in super().stream(request):
            yield event


async def up_to_the_threshold(s: Session, model: Gated) -> None:
    """Five rounds, the last of them with an update under way; then what the user says next."""
    for _ in range(4):
        await says(s, LONG[:32_000])
    model.gate = anyio.Event()
    await s.add(user(LONG))
    await s.prepare()
    await s.observe(reply("Understood."))
    await s.add(user(LONG[:36_000]))
    assert s.jobs.running == ("session_memory",)


SMALL = replace(CLASSIC, context_window=60_000)  # threshold 50,100; 12,000 may be uncovered


async def test_an_update_under_way_is_waited_for_and_counts(desk: Desk):
    """Without it too much would be uncovered; what it hands in reaches the view in time."""
    model = Gated(desk._answer)
    async with desk.open(model=model, settings=SMALL) as s:
        await up_to_the_threshold(s, model)
        waiting, asked = s.world.wait, list[float]()

        async def wait(name: str, seconds: float) -> bool:
            assert waiting is not None
            assert model.gate is not None
            asked.append(seconds)
            model.gate.set()
            return await waiting(name, seconds)

        s.world = replace(s.world, wait=wait)
        await s.prepare()
        assert asked == [15]
        (stand,) = records(s, Replaced)
        assert stand.reason == "session_memory"
        assert stand.boundary.calls == 0


async def test_an_update_that_does_not_end_is_waited_for_no_longer_than_that(desk: Desk):
    model = Gated(desk._answer)
    impatient = replace(
        SMALL, notes_wait_seconds=0, compact_breaker_failures=1, extract_drain_seconds=1
    )
    async with desk.open(model=model, settings=impatient) as s:
        await up_to_the_threshold(s, model)
        s.world = replace(s.world, fork=None)  # nobody to write a full summary
        await s.prepare()
        assert not records(s, Replaced)
        assert "came since the last update" in desk.said()
        assert model.gate is not None
        model.gate.set()


async def test_an_update_behind_a_request_that_failed_is_not_stuck(desk: Desk):
    """It waits for the first byte of an answer that never comes; the turn's end lets it go on."""
    soon = replace(CLASSIC, extract_drain_seconds=1)
    async with desk.open(settings=soon) as s:
        await says(s, "hello")
        await s.add(user(LONG))
        await s.prepare()
        s.jobs.start("session_memory", partial(update, s))
        with anyio.fail_after(10):
            while not s._first_byte.statistics().tasks_waiting:
                await anyio.lowlevel.checkpoint()
        await s.end_turn("cancelled")
        assert await s.jobs.wait("session_memory", 2)
        await s.flush()
        assert records(s, NotesTaken)


async def test_a_session_that_is_closed_waits_for_no_answer_to_its_last_request(desk: Desk):
    """Nobody will bring it: the update goes on without, and nothing is given up."""
    async with desk.open() as s:
        await says(s, "hello")
        await s.add(user(LONG))
        await s.prepare()
        s.jobs.start("session_memory", partial(update, s))
        with anyio.fail_after(10):
            while not s._first_byte.statistics().tasks_waiting:
                await anyio.lowlevel.checkpoint()
    assert records(s, NotesTaken)
    assert "given up at exit" not in desk.said()


async def test_an_agent_takes_notes_while_it_works(desk: Desk):
    def answering(request: Request) -> Reply:
        if isinstance(request.task, NotesTask):
            return noting(request.task, request)
        return reply("Understood.")

    environ = {"HOME": str(desk.home.parent), "REVERIE_CONTEXT_POLICY": "classic"}
    environ["REVERIE_NOTES_FIRST_TOKENS"] = "9999"
    wanted = AgentOptions(desk.project, home=desk.home, environ=environ)
    async with open_agent(wanted, ScriptedModel(answering), say=desk.told.append) as agent:
        await agent.turn(LONG)
        await agent.session.jobs.wait("session_memory", 10)
        await agent.session.flush()
        assert "Mending the login" in path_of(agent.session).read_text()
        assert len(records(agent.session, NotesTaken)) == 1


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["with Edit", "without"])
async def test_the_embedded_model_takes_them_through_the_same_fork(desk: Desk, tools: list[Any]):
    async with desk.open(model=EmbeddedModel(), tools=tools) as s:
        for n in range(3):
            await says(s, f"Mend src/shop/part_{n}.py, and never touch src/legacy.py. {LONG}")
        text = path_of(s).read_text()
        assert len(records(s, NotesTaken)) == 3
        assert not records(s, Failed)
    assert frame(text) == frame(template())
    assert "src/shop/part_2.py" in text
    assert "never touch src/legacy.py" in text


async def test_an_edit_that_brings_in_a_secret_is_undone_and_told(desk: Desk):
    secret = "gsk" + "_" + "aB3dE5gH7j" * 5

    def careless(task: NotesTask, request: Request) -> Reply:
        if len(desk.tasks) == 1:
            return reply(edit(task, STATE, f"{STATE}Deploys use {secret}.\n"))
        assert "was undone" in request.at(request.count - 1).pieces[0].block.text
        return reply(edit(task, STATE, f"{STATE}Deploys use the key of the vault.\n"))

    desk.answering = careless
    async with desk.open() as s:
        await says(s, LONG)
        assert secret not in path_of(s).read_text("utf-8")
        assert "key of the vault" in path_of(s).read_text("utf-8")
        assert records(s, NotesTaken)
    assert "groq-key" in desk.said()
    assert secret[6:12] not in desk.said()
