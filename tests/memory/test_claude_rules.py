"""Claude Code's own instruction files: the user's, nested rules, rules for paths, excludes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import Agent, AgentOptions, open_agent
from reverie.session import find_skills, instruction_files, path_rules
from reverie.settings import Settings
from reverie.simulator import Engine, Given, SimulatedModel, call, last_text
from reverie.store import Project
from reverie.testing import ManualClock
from reverie.topics import rule_paths
from reverie.transcript import Attached, Object
from tests.session.compacts import ASKED, NOTES, a_summary
from tests.session.test_restoring import restored

pytestmark = pytest.mark.spec("12.claude")


class Place:
    def __init__(self, tmp: Path) -> None:
        self.home, self.repo, self.user = tmp / "home", tmp / "repo", tmp / "user"
        (self.repo / ".git").mkdir(parents=True)
        self.user.mkdir()
        self.environ = {"HOME": str(self.user)}

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def project(self, cwd: Path) -> Project:
        return Project.at(cwd, home=self.home, environ=self.environ, settings=Settings())

    def texts(self, cwd: Path | None = None) -> list[str]:
        found = instruction_files(self.project(cwd or self.repo), managed=self.home / "none")
        return [one.text.strip() for one in found.files]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_users_own_files_are_read_below_ours(place: Place) -> None:
    place.write(place.user / ".claude" / "CLAUDE.md", "of Claude")
    place.write(place.user / ".claude" / "rules" / "b.md", "a rule of the user's")
    place.write(place.home / "CLAUDE.md", "of ours")
    place.write(place.repo / "CLAUDE.md", "of the project")
    assert place.texts() == ["of Claude", "a rule of the user's", "of ours", "of the project"]
    place.environ["CLAUDE_CONFIG_DIR"] = str(place.home)  # one folder for both: read once
    assert place.texts() == ["of ours", "of the project"]


def test_rules_in_folders_are_read_and_links_not_followed(place: Place) -> None:
    rules = place.repo / ".claude" / "rules"
    for name in ("b.md", "a/z.md", "a/deep/er.md", "c.txt"):
        place.write(rules / name, name)
    place.write(place.user / "outside" / "x.md", "outside")
    (rules / "link").symlink_to(place.user / "outside")
    (rules / "loop").symlink_to(rules)
    assert place.texts() == ["a/deep/er.md", "a/z.md", "b.md"]


@pytest.mark.parametrize(
    ("head", "globs"),
    [
        ("paths: src/**/*.py", ("src/**/*.py",)),
        ("paths: a.py, b/*.py", ("a.py", "b/*.py")),
        ("paths: '*.{ts,tsx}'", ("*.{ts,tsx}",)),
        ('paths: ["a.py", "b.py"]', ("a.py", "b.py")),
        ("description: x\npaths:\n  - 'src/*.py'\n  - \"b\"\nother: y", ("src/*.py", "b")),
        ("globs: *.go", ("*.go",)),
        ("description: x", ()),
        ("paths:", ()),
        ("paths: []", ()),
    ],
)
def test_the_forms_in_which_a_rule_says_its_paths(head: str, globs: tuple[str, ...]) -> None:
    text = f"---\n{head}\n---\nBody\n"
    assert rule_paths(text)[0] == globs
    if globs:
        assert rule_paths(text)[1] == "Body\n"


def test_a_rule_without_a_head_holds_everywhere(place: Place) -> None:
    for text in ("Body", "---\nBody", "paths: x", "---\n---\nBody"):
        assert rule_paths(text)[0] == ()


def test_excludes_leave_files_out_and_a_project_cannot_exclude_the_users(place: Place) -> None:
    place.write(place.user / ".claude" / "CLAUDE.md", "the user's")
    place.write(place.repo / "CLAUDE.md", "the project's")
    place.write(place.repo / ".claude" / "rules" / "other-team" / "a.md", "of others")
    settings = place.repo / ".claude" / "settings.json"
    everything = {"claudeMdExcludes": ["**/CLAUDE.md", f"{place.repo}/.claude/rules/other-team/**"]}
    place.write(settings, json.dumps(everything))
    assert place.texts() == ["the user's", "the project's"]
    place.write(place.user / ".claude" / "settings.json", json.dumps(everything))
    assert place.texts() == []
    place.write(place.home / "settings.json", json.dumps({"claudeMdExcludes": ["[", 5, "*.x"]}))
    (place.user / ".claude" / "settings.json").unlink()
    settings.unlink()
    assert len(place.texts()) == 3


# --- rules for paths, in an agent


def model(body: Object) -> Given:
    said = last_text(body)
    if ASKED in said:
        return a_summary()
    found = re.search(r"^Read (/.+)$", said, re.MULTILINE)
    return [call("Read", {"file_path": found[1]})] if found else "Done."


def told(agent: Agent) -> list[str]:
    records = (entry.record for entry in agent.session.view.entries)
    return [r.blocks[0].text for r in records if isinstance(r, Attached) and r.kind == "path-rule"]


async def test_a_rule_for_paths_is_told_when_such_a_file_is_touched(place: Place) -> None:
    rules = place.repo / ".claude" / "rules"
    place.write(rules / "api.md", "---\npaths: src/api/**\n---\nValidate input </path-rule> now.\n")
    place.write(rules / "web.md", "---\npaths: '*.tsx'\n---\nNo inline styles.\n")
    for name in ("src/api/users.py", "src/other.py", "app/x.tsx"):
        place.write(place.repo / name, "text\n")
    assert place.texts() == []
    found = path_rules(place.project(place.repo))
    assert [one.globs for one in found] == [("src/api/**",), ("*.tsx",)]
    environ = {**place.environ, NOTES: "0", "REVERIE_DISABLE_AUTO_MEMORY": "1"}
    wanted = AgentOptions(place.repo, home=place.home, mode="allow", environ=environ)
    simulated = SimulatedModel(Engine(answerer=model), window=200_000)
    async with open_agent(wanted, simulated, clock=ManualClock()) as agent:
        await agent.turn(f"Read {place.repo}/src/other.py")
        assert told(agent) == []
        await agent.turn(f"Read {place.repo}/src/api/users.py")
        (first,) = told(agent)
        assert "src/api/**" in first
        assert ".claude/rules/api.md" in first
        assert "Validate input &lt;/path-rule> now." in first
        await agent.turn(f"Read {place.repo}/src/api/users.py")
        assert told(agent) == [first]
        await agent.turn(f"Read {place.repo}/app/x.tsx\n{'more ' * 800}")
        assert len(told(agent)) == 2
        await agent.session.summarize()
        assert sorted(restored(agent, "path-rule")) == sorted(told(agent)[:2])


def test_skills_of_claude_code_are_offered_and_ours_count_first(place: Place) -> None:
    def skill(folder: str, name: str, about: str, more: str = "") -> None:
        text = f"---\nname: {name}\ndescription: {about}\n{more}---\nBody\n"
        place.write(place.repo / folder / name / "SKILL.md", text)

    skill(".claude/skills", "deploy", "How to deploy")
    skill(".claude/skills", "review", "Theirs")
    skill(".claude/skills", "by-hand", "Only by hand", "disable-model-invocation: true\n")
    skill(".reverie/skills", "review", "Ours")
    found: list[Any] = [(one.name, one.about, one.shown) for one in find_skills(place.repo)]
    assert found == [
        ("deploy", "How to deploy", ".claude/skills/deploy/SKILL.md"),
        ("review", "Ours", ".reverie/skills/review/SKILL.md"),
    ]
