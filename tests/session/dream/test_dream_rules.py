"""Rules in doubt: a dream is told of them, may mend or retire them, and weakens no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reverie.consolidation import CheckInput, check, fix_folder, judged_once
from reverie.embedded import EmbeddedModel
from reverie.session import doubted_rules, dream_prompt, find, run_dream, undo
from reverie.settings import DEFAULTS
from reverie.store import RuleStore, list_rules
from reverie.testing import ScriptedModel, call
from reverie.topics import Trust
from reverie.transcript import DoubtedRule
from reverie.wire import Request
from tests.session.dream.stage import BY_USER, NOW, Stage, played, reads, rounds

pytestmark = [pytest.mark.spec("B20.dream")]

DAY = 86_400.0


def rule(name: str, says: str, head: str, body: str) -> bytes:
    top = f"---\nname: {name}\ndescription: {says}\ntype: feedback\n{head}---\n"
    return f"{top}\n{body}\n".encode()


RULES = {
    "billing.md": rule(
        "Billing by hand",
        "Never run make bill until 2026-06-30",
        "applies_to: {command: make bill}\n",
        "Never run `make bill` until 2026-06-30. Teresa runs it by hand until then; from "
        "2026-07-01 on everybody may.",
    ),
    "containers.md": rule(
        "Containers",
        "docker run only with --rm",
        "applies_to: {command: docker run --rm, lacks: --rm}\n",
        "Start containers only with docker run --rm.\n\n"
        "**Why:** the disk of the build host fills up.",
    ),
    "force.md": rule(
        "Force pushes", "Never git push --force", "level: block\n", "Never git push --force."
    ),
    "rebase.md": rule(
        "Rebases",
        "Never git rebase main while a review is open",
        "applies_to: {command: git rebase, has: main}\n",
        "Never git rebase main while a review is open.",
    ),
    "type_checks.md": rule(
        "Type checks",
        "Run tsc only with --noEmit",
        "applies_to: {command: tsc}\n",
        "Run tsc only with --noEmit.\n\n**Why:** without it the tree is full of .js files.",
    ),
}
BROKEN = ("matched", "held", "broken")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Rules of long ago; three are overridden every time, one is kept, one can never hold."""
    made = Stage.of(tmp_path, {})
    made.clock.time = NOW - 200 * DAY
    with made.memories.folder.locked(), made.memories.history.by(BY_USER):
        for key, data in RULES.items():  # as an older version saved them, which refused none
            made.memories.folder.save(key, data)
    store = rules_of(made)
    store.book()
    made.clock.time = NOW
    for key in ("type_checks.md", "billing.md", "force.md"):
        for n in range(4):
            store.count([(key, event) for event in BROKEN], NOW - (20 - n) * DAY)
    kept = ("matched", "held", "changed")
    store.count([("rebase.md", event) for event in kept], NOW - 120 * DAY)
    yield made
    made.close()


def rules_of(stage: Stage) -> RuleStore:
    return RuleStore(stage.memories, stage.base / "project")


def holds(stage: Stage, command: str) -> list[str]:
    root = str(stage.base / "project")
    found = rules_of(stage).book().look("Bash", {"command": command}, cwd=root, root=root)
    return [f"{one.get('file')}: {one.get('level')}" for one in found]


def told_to(request: Request) -> str:
    return "".join(one.text for one in request.messages()).replace("\\n", "\n")


async def test_the_played_dream_mends_two_rules_and_retires_one(stage: Stage) -> None:
    before, model = stage.files(), played("dream_rules_played.json")
    assert holds(stage, "tsc --noEmit") == ["type_checks.md: remind"]
    done = await run_dream(stage.dreamer(model))
    assert (done.status, done.left_out, done.requests) == ("completed", (), 5)
    assert done.changed == ("billing.md", "containers.md", "type_checks.md")
    first, again = told_to(model.requests[0]), told_to(model.requests[3])
    known = "held and overridden every time; calls matched 4, held 4, made again all the same 4"
    assert f"- type_checks.md: {known}, kept to 0; speaks of: commands tsc\n" in first
    assert "- containers.md: it can never hold: its command has `--rm`\n" in first
    assert "- rebase.md: no call has gone against it since" in first
    assert "- force.md: held" not in first
    assert "- rule: force.md: it asks or blocks, which only the user changes" in again
    assert holds(stage, "tsc --noEmit") == []
    assert holds(stage, "tsc") == ["type_checks.md: remind"]
    assert holds(stage, "docker run alpine") == ["containers.md: remind"]
    assert holds(stage, "make bill") == []
    assert holds(stage, "git push -f") == ["force.md: block"]
    assert b"everybody may" in stage.files()["billing.md"]
    undo(stage.memories, find(stage.memories, done.id))
    assert stage.files() == before


async def test_what_was_mended_is_in_doubt_no_more(stage: Stage) -> None:
    await run_dream(stage.dreamer(played("dream_rules_played.json")))
    rows = {row.rule.get("file"): row for row in list_rules(stage.memories, stage.base / "project")}
    assert (rows["type_checks.md"].doubts, rows["type_checks.md"].notes) == ((), ())
    assert "overridden" in rows["force.md"].notes[0]
    for n in range(1, 4):
        rules_of(stage).count([("type_checks.md", one) for one in BROKEN], NOW + n * DAY)
    rows = {row.rule.get("file"): row for row in list_rules(stage.memories, stage.base / "project")}
    assert rows["type_checks.md"].doubts == ("held and overridden every time",)


def test_a_dream_without_rules_in_doubt_is_told_nothing_of_them() -> None:
    def told(*rules: DoubtedRule) -> str:
        return dream_prompt("/w", "/t", "today", DEFAULTS, (), {"a.md": "x"}, rules)

    bare = told()
    assert "applies_to" not in bare
    one = DoubtedRule("a.md", "Never run x.", "commands x", "held 3", ("overridden",))
    full = told(one)
    at = full.index("\n## Rules in doubt")
    end = full.index("\n## The files")
    assert full[:at] + full[end:] == bare
    assert full[at:end].endswith(
        "- a.md: overridden; held 3; speaks of: commands x\n  > Never run x.\n"
    )


WEAKER = {
    "the level goes": lambda text: text.replace("level: block\n", ""),
    "the level falls": lambda text: text.replace("level: block", "level: off"),
    "it is retired": lambda text: text.replace("level: block", "applies_to: none\nlevel: block"),
    "its sentence is about another": lambda text: text.replace("git push --force", "git gc"),
    "its file goes": lambda _: "",
}


@pytest.mark.parametrize("how", WEAKER)
def test_a_rule_that_blocks_stays_byte_for_byte(how: str) -> None:
    data = WEAKER[how](RULES["force.md"].decode()).encode()
    work = {"force.md": data} if data else {}
    base, doubts = {"force.md": RULES["force.md"]}, ["force.md"]
    found = judged_once(CheckInput(base, now=NOW), work, doubted=doubts).faults
    (told,) = [one.text for one in found if one.kind == "rule"]
    assert told.startswith("it asks or blocks")


async def test_a_rule_that_blocks_is_weakened_by_no_dream(stage: Stage) -> None:
    before = stage.files()
    text = RULES["force.md"].decode().replace("level: block", "level: off")

    def writes(folder: str) -> list[Any]:
        return [call("Write", "w", file_path=f"{folder}/force.md", content=text)]

    model = rounds(lambda at: reads(at, "force.md"), writes, "done", "done", "done")
    done = await run_dream(stage.dreamer(model))
    assert done.status == "failed"
    assert "asks or blocks" in "".join(done.faults)
    assert stage.files() == before
    assert holds(stage, "git push -f") == ["force.md: block"]


HEAD = "applies_to: {command: tsc, lacks: --noEmit}\n"
TSC = rule(
    "Types",
    "Run tsc only with --noEmit",
    HEAD,
    "Run tsc only with --noEmit. The build of the web client fills the tree with JavaScript files "
    "beside their sources, and the linter then looks at both. Clean up with git clean in web/.",
)
NONE = TSC.replace(HEAD.encode(), b"applies_to: none\n")
EVERY = TSC.replace(HEAD.encode(), b"applies_to: {tool: Bash}\n")
TWIN = TSC.replace(b"name: Types", b"name: Types again")


@pytest.mark.parametrize(
    ("work", "doubt", "wrong"),
    [
        ({"a.md": NONE}, True, ""),
        ({"a.md": NONE}, False, "nothing is known against its `applies_to`"),
        ({"a.md": TSC.replace(HEAD.encode(), b"")}, False, "nothing is known"),
        ({"a.md": EVERY}, True, "it would hold every call"),
        ({"a.md": TSC.replace(b"type: f", b"level: off\ntype: f")}, True, "`level` is the user's"),
        ({"b.md": TWIN}, False, ""),
        ({"b.md": TWIN.replace(HEAD.encode(), b"")}, False, "must say the same"),
        ({"a.md": TSC, "b.md": TWIN.replace(HEAD.encode(), b"")}, True, ""),
    ],
)
def test_what_a_dream_may_do_to_a_head(work: dict[str, bytes], doubt: bool, wrong: str) -> None:
    doubts = ["a.md"] if doubt else []
    found = judged_once(CheckInput({"a.md": TSC}, now=NOW), work, doubted=doubts).faults
    told = [one.text for one in found if one.kind == "rule"]
    assert (len(told), wrong in "".join(told)) == (bool(wrong), True)


def test_what_nobody_trusts_is_no_rule_of_the_users() -> None:
    firm = {"a.md": RULES["force.md"]}
    none = dict[str, bytes]()
    found = judged_once(CheckInput(firm, now=NOW, trust=lambda _: Trust.UNTRUSTED), none)
    assert "rule" not in {one.kind for one in found.faults}


async def test_the_embedded_dream_changes_no_rule_and_tells_of_each(stage: Stage) -> None:
    dreamer = stage.dreamer(ScriptedModel([]))
    done = await run_dream(replace(dreamer, model=EmbeddedModel()))
    assert done.status == "completed"
    after = stage.files()
    for key, data in RULES.items():
        assert rule_head(after[key]) == rule_head(data)
    told = "left: rule type_checks.md: held and overridden every time; calls matched 4, held 4"
    assert told in done.summary
    assert done.summary.count("left: rule") == 4
    assert "left: stale_date billing.md" in done.summary
    assert holds(stage, "tsc") == ["type_checks.md: remind"]


def rule_head(data: bytes) -> bytes:
    return b"\n".join(
        row for row in data.splitlines() if row.startswith((b"applies_to", b"level", b"type"))
    )


def test_rules_in_doubt_are_those_of_this_folder_that_remind(stage: Stage) -> None:
    root, files = stage.base / "project", stage.files()
    found = doubted_rules(stage.memories, root, files)
    order = ["billing.md", "containers.md", "type_checks.md", "rebase.md"]
    assert [one.file for one in found] == order
    mine = {"rebase.md": files["rebase.md"]}
    assert [one.file for one in doubted_rules(stage.memories, root, mine)] == ["rebase.md"]


def test_a_repair_merges_no_rule_into_what_is_about_other_calls() -> None:
    other = TSC.replace(HEAD.encode(), b"")
    times = {"a.md": 1.0, "b.md": 2.0}
    index = b"- [Types](a.md) \xe2\x80\x94 x\n- [Types](b.md) \xe2\x80\x94 x\n"
    for older, newer, merged in ((TSC, TSC, True), (other, TSC, False), (TSC, other, True)):
        files = {"a.md": older, "b.md": newer, "MEMORY.md": index}
        assert check(CheckInput(files, times, NOW)).of("duplicate")
        done = fix_folder(CheckInput(files, times, NOW))
        assert ("b.md" in done.files) is merged
        assert b"- applies_to" not in (done.files.get("a.md") or b"")


def test_a_level_that_is_none_of_ours_is_a_fact_like_any_other() -> None:
    said = TSC.replace(HEAD.encode(), b"level: senior\n")
    found = judged_once(CheckInput({"a.md": said}, now=NOW), {"b.md": TWIN}).faults
    assert [one.text for one in found if one.kind == "fact lost" and "senior" in one.text]


def test_a_repair_leaves_what_asks_or_blocks() -> None:
    said = rule("Freeze", "No merges", "level: ask\n", "The freeze began yesterday.")
    given = CheckInput({"a.md": said}, {"a.md": NOW - 9 * DAY}, NOW)
    (found,) = check(given).of("stale_date")
    assert (found.fixable, "a.md" in fix_folder(given).files) == (False, False)
