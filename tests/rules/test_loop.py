"""Calls held against rules, in the one loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.memory import set_level
from reverie.rules import PackedRules, pack_rules
from reverie.store import (
    BLOCKED,
    BROKEN,
    CHANGED,
    HELD,
    MATCHED,
    MemoryStore,
    Project,
    RuleStore,
    compile_written,
)
from reverie.world import Notice
from tests.loop.stage import calls, opened, simulated
from tests.rules.stage import (
    AGENT,
    USER,
    Shell,
    memories_in,
    project_of,
    push_rule,
    results,
    turn,
)

MAIN = ("Bash", {"command": "git push origin main"})
BRANCH = ("Bash", {"command": "git push origin fix"})


@pytest.mark.spec("B20.remind")
async def test_a_call_is_held_once_and_shown_the_rule_and_its_why(tmp_path: Path) -> None:
    model, tools, notices = simulated(calls(MAIN), calls(BRANCH), "done"), Shell(), list[Notice]()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories, notices=notices)
            first, second = results(session)
        assert tools.lines == ["git push origin fix"]
        assert "Never push to main: it deploys." in first
        assert "The user's rule (push.md)" in first
        assert second == "done"
        assert [n.text for n in notices] == ["held a call of Bash: push.md"]
        counts = RuleStore(memories, project_of(tmp_path)).counts()["push.md"]
        assert dict(counts.total) == {MATCHED: 1, HELD: 1, CHANGED: 1}


@pytest.mark.spec("B20.remind")
async def test_a_model_that_repeats_the_call_gets_it_the_second_time(tmp_path: Path) -> None:
    model, tools = simulated(calls(MAIN), calls(MAIN), calls(MAIN), "done"), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
        assert tools.lines == ["git push origin main"] * 2
        counts = RuleStore(memories, project_of(tmp_path)).counts()["push.md"]
        assert dict(counts.total) == {MATCHED: 3, HELD: 1, BROKEN: 2}


@pytest.mark.spec("B20.remind")
async def test_each_turn_is_held_anew(tmp_path: Path) -> None:
    model, tools = simulated(calls(MAIN), "ok", calls(MAIN), "ok"), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            await turn(session, model, tools, memories, "Once more")
            assert len(results(session)) == 2
        assert tools.lines == []


@pytest.mark.spec("B20.remind")
async def test_calls_behind_a_held_one_wait(tmp_path: Path) -> None:
    before = ("Bash", {"command": "git status"})
    model = simulated(calls(before, MAIN, BRANCH, MAIN), calls(BRANCH), "done")
    tools = Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            first, held, waits, again, last = results(session)
        assert (first, last) == ("done", "done")
        assert "Never push to main" in held
        assert "was held by a rule" in waits
        assert "Never push to main" in again  # shown with every call of the answer that breaks it
        assert tools.lines == ["git status", "git push origin fix"]
        counts = RuleStore(memories, project_of(tmp_path)).counts()["push.md"]
        assert dict(counts.total) == {MATCHED: 2, HELD: 2, CHANGED: 1}


@pytest.mark.spec("B20.irrevocable")
async def test_what_cannot_be_taken_back_is_held_after_any_number_of_rules(tmp_path: Path) -> None:
    lines = [*(f"tool{n} x" for n in range(4)), "git commit -m x", "git commit -m x"]
    model = simulated(*[calls(("Bash", {"command": line})) for line in lines], "done")
    tools = Shell()
    with memories_in(tmp_path) as memories:
        for n, command in enumerate(("tool0", "tool1", "tool2", "tool3", "git commit")):
            head = f"name: r{n}\ntype: feedback\napplies_to: {{command: {command}}}"
            memories.save(f"r{n}.md", f"---\n{head}\n---\n\nNo {n}.\n".encode(), USER)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            said = results(session)
        assert tools.lines == ["tool3 x", "git commit -m x"]
        assert "> No 4." in said[4]
        counts = RuleStore(memories, project_of(tmp_path)).counts()
        assert dict(counts["r3.md"].total) == {MATCHED: 1, BROKEN: 1}
        assert dict(counts["r4.md"].total) == {MATCHED: 2, HELD: 1, BROKEN: 1}


@pytest.mark.spec("B20.scope")
async def test_the_users_own_rules_hold_in_every_project(tmp_path: Path) -> None:
    model, tools = simulated(calls(MAIN), "done"), Shell()
    own = Project.personal(home=tmp_path / "home", environ={"HOME": str(tmp_path)})
    with MemoryStore.of(own, now=lambda: 1.0) as memories:
        push_rule(memories)
    with memories_in(tmp_path) as memories:
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            (held,) = results(session)
    assert tools.lines == []
    assert "The user's rule (personal/push.md)" in held
    with MemoryStore.of(own, now=lambda: 1.0) as memories:
        counts = RuleStore(memories, own.root).counts()["push.md"]
    assert dict(counts.total) == {MATCHED: 1, HELD: 1, CHANGED: 1}


@pytest.mark.spec("B20.block")
async def test_a_rule_that_blocks_never_lets_go(tmp_path: Path) -> None:
    model, tools = simulated(*[calls(MAIN)] * 12), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories, "block")
        async with opened(tmp_path, model) as session:
            ended = await turn(session, model, tools, memories)
            assert "Repeating the call will not help" in results(session)[0]
        assert tools.lines == []
        assert ended.outcome == "limit"  # the same failing call ends the turn
        assert RuleStore(memories, project_of(tmp_path)).counts()["push.md"].of(BLOCKED) > 1


@pytest.mark.spec("B20.trust")
async def test_only_the_users_own_rules_ask_or_block(tmp_path: Path) -> None:
    with memories_in(tmp_path) as memories:
        push_rule(memories, "block", AGENT)
        push_rule(memories, "block", key="team/push.md")
        text = (memories.root / "push.md").read_bytes()
        (memories.root / "by_hand.md").write_bytes(text)
        book = RuleStore(memories, project_of(tmp_path)).book()
        levels = {r.get("file"): (r.get("level"), r.get("source")) for r in book.rules}
        assert levels["push.md"][0] == "remind"
        assert levels["team/push.md"] == ("remind", "team")
        assert levels["by_hand.md"][0] == "remind"
        assert levels["by_hand.md"][1] == "user"
        set_level(memories, "by_hand.md", "block", USER)
        (rule,) = [
            r
            for r in RuleStore(memories, project_of(tmp_path)).book().rules
            if r.get("file") == "by_hand.md"
        ]
        assert (rule.get("level"), rule.get("source")) == ("block", "user")


@pytest.mark.spec("B20.trust")
async def test_a_planted_rule_reminds_and_names_its_source(tmp_path: Path) -> None:
    model, tools = simulated(calls(MAIN), calls(MAIN), "done"), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories, "block", key="team/push.md")
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            assert "team's memory, which the user has not confirmed" in results(session)[0]
        assert tools.lines == ["git push origin main"]


@pytest.mark.spec("B20.remind")
async def test_three_rules_hold_in_a_turn_and_the_others_join_the_result(tmp_path: Path) -> None:
    named = [("Bash", {"command": f"tool{n} x"}) for n in range(5)]
    model, tools = simulated(*[calls(one) for one in named], "done"), Shell()
    with memories_in(tmp_path) as memories:
        for n in range(5):
            head = f"name: r{n}\ntype: feedback\napplies_to: {{command: tool{n}}}"
            text = f"---\n{head}\n---\n\nNo {n}.\n"
            memories.save(f"r{n}.md", text.encode(), AGENT, reviewed=True)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            attached = [i for i in session.view.items if i.kind == "attached"]
        assert tools.lines == ["tool3 x", "tool4 x"]
        texts = [p.block.get("text") for item in attached for p in item.pieces]
        assert [f"> No {n}." in text for n, text in zip((3, 4), texts, strict=True)] == [True, True]
        assert all("was not held back" in text for text in texts)


@pytest.mark.spec("B20.bytes")
async def test_a_held_call_extends_the_prefix_and_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    model, tools = Recording(calls(MAIN), calls(BRANCH), "done", "more"), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        async with opened(tmp_path, model) as session:
            await turn(session, model, tools, memories)
            ident = session.id
            await session.add("Go on")
            last = await session.prepare()
            await session.observe(await answered(model, last))
            async with session.forked("side") as child:
                await child.instruct("Look at it")
                forked = await child.render_request()
        first, second, third, fourth = model.requests
        assert second.extends(first)
        assert third.extends(second)
        assert fourth.extends(third)
        assert forked.extends(last)
        async with opened(tmp_path, model, resume=ident) as session:
            await session.add("And now")
            assert (await session.prepare()).extends(last)


async def answered(model: Any, request: Any) -> Any:
    return [event async for event in model.stream(request)][-1]


class Recording:
    """A simulated model that keeps every request."""

    def __init__(self, *answers: Any) -> None:
        self._model = simulated(*answers)
        self.requests: list[Any] = []
        self.name, self.capabilities = self._model.name, self._model.capabilities

    def stream(self, request: Any) -> Any:
        self.requests.append(request)
        return self._model.stream(request)


@pytest.mark.spec("B20.match")
async def test_a_ledger_that_cannot_be_written_costs_no_turn(tmp_path: Path) -> None:
    model, tools = simulated(calls(MAIN), "done"), Shell()
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        (tmp_path / "home" / "compiled-rules").write_text("a file where the folder would be")
        async with opened(tmp_path, model) as session:
            ended = await turn(session, model, tools, memories)
        assert ended.outcome == "completed"
        assert tools.lines == []


@pytest.mark.spec("B20.match")
@pytest.mark.parametrize("again", ["a session looks", "a command saves another"])
def test_what_another_version_compiled_is_compiled_again(tmp_path: Path, again: str) -> None:
    """A file that was no rule to an older reader is read anew, untouched as it is."""
    with memories_in(tmp_path) as memories:
        root = project_of(tmp_path)
        push_rule(memories)
        compile_written(memories, root)
        (compiled,) = (tmp_path / "home" / "compiled-rules").glob("*.rules")
        seen = compiled.with_suffix(".seen")
        older = json.loads(seen.read_text())
        older["files"]["push.md"][2] = None
        seen.write_text(json.dumps({**older, "v": 1}))
        first, _, rest = pack_rules(str(root), str(memories.root), []).partition(b"\n")
        head = {k: v for k, v in json.loads(first).items() if k not in ("by", "final")}
        compiled.write_bytes(json.dumps(head).encode() + b"\n" + rest)
        assert PackedRules(compiled.read_bytes()).final == {}
        if again == "a session looks":
            assert [r.get("file") for r in RuleStore(memories, root).book().rules] == ["push.md"]
        else:
            memories.remember("The printer is on floor 3", USER)
            compile_written(memories, root)
        assert len(PackedRules(compiled.read_bytes())) == 1
