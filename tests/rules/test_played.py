"""A course that somebody played as the model: three rules of an earlier session, and a task that
tempts to break each.

They saw the requests alone, over the wire, and played the hurry of which people report: the rules
stood in the head, and the first calls went against all three. Shown each rule once, they kept to
it. The answers are kept, less one command that only looked. With the rules off the same first
answers are given by the test, and all three rules are broken.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.session import TurnResult
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, RuleStore
from reverie.topics import new
from tests.loop.stage import calls, simulated
from tests.rules.stage import USER

pytestmark = [pytest.mark.spec("B20.played"), pytest.mark.needs("git", "make")]
PLAYED = json.loads((Path(__file__).parent.parent / "fixtures/rules/played.json").read_text())
MAKE = (
    "gen:\n\t@sed 's/.*\\[/FIELDS = [/; s/\\].*/]/' schema.json > generated/client.py"
    " && echo written\n"
)


def git(folder: Path, *args: str) -> str:
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *name, *args], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "generated/client.py": 'FIELDS = ["id", "amount", "currency"]\n',
        "schema.json": '{"fields": ["id", "amount", "currency"]}\n',
        "src/app.py": "from generated.client import FIELDS\nprint('amount' in FIELDS)\n",
        "build/old/a.o": "x\n",
        "Makefile": MAKE,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(folder, "push", "-q", "origin", "main")
    return folder


async def played(tmp: Path, project: Path, *, rules: bool) -> TurnResult:
    environ = {"HOME": str(tmp), "PATH": "/usr/bin:/bin", "REVERIE_FLAG_RULES": str(int(rules))}
    environ |= {"REVERIE_FLAG_SESSION_MEMORY": "0", "REVERIE_FLAG_EXTRACT_MEMORIES": "0"}
    home = tmp / "home"
    with MemoryStore.of(
        Project.at(project, home=home, environ=environ, settings=DEFAULTS), now=lambda: 1.0
    ) as memories:
        for key, text in PLAYED["rules"].items():
            rule = text.partition("\n")[0]
            one = new(key, name=key[9:-3], description=rule, type="feedback", body=text)
            memories.save(key, one.data, USER)
    rest = PLAYED["shown the rules" if rules else "not shown"]
    answers: list[Any] = [*PLAYED["answers"], *rest]
    script = [one if isinstance(one, str) else calls(*one) for one in answers]
    wanted = AgentOptions(project, home=home, environ=environ, mode="allow")
    model = simulated(*script)
    async with open_agent(wanted, model) as agent:
        return await agent.turn(PLAYED["turn"])


async def test_three_rules_are_held_and_followed(tmp_path: Path, project: Path) -> None:
    first = git(project, "rev-parse", "main")
    ended = await played(tmp_path, project, rules=True)
    assert (ended.outcome, ended.rounds) == ("completed", 6)
    assert git(tmp_path / "remote.git", "rev-parse", "main") == first
    assert git(tmp_path / "remote.git", "rev-parse", "rename-total-cents") != first
    assert (project / ".trash/build/old/a.o").exists()
    assert '"total_cents"' in (project / "schema.json").read_text()
    with MemoryStore.of(
        Project.at(project, home=tmp_path / "home", environ={}, settings=DEFAULTS), now=lambda: 1.0
    ) as memories:
        counts = RuleStore(memories, project).counts()
    assert {file: dict(one.total) for file, one in counts.items()} == {
        file: {"matched": 1, "held": 1, "changed": 1} for file in PLAYED["rules"]
    }


async def test_without_them_the_same_hurry_breaks_all_three(tmp_path: Path, project: Path) -> None:
    first = git(project, "rev-parse", "main")
    ended = await played(tmp_path, project, rules=False)
    assert (ended.outcome, ended.rounds) == ("completed", 4)
    assert git(tmp_path / "remote.git", "rev-parse", "main") != first
    assert not (project / ".trash").exists()
    assert "total_cents" in (project / "generated/client.py").read_text()
    assert "total_cents" not in (project / "schema.json").read_text()
