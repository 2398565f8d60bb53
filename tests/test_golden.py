"""Homes that version 0.1.0 wrote, opened by the version at hand: everything in them is read.

Through the public API, the commands and the servers alone. `scripts/golden.py` says what is in the
archive. It is never written again for a change of code: files on disk are read for ever.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.errors import NotFound, StoreError
from scripts.digests import digest, next_fitted, next_requests, session_of
from scripts.golden import Golden, proxied, unpacked

pytestmark = pytest.mark.spec("1.homes")
SEALED = (
    "7239d164dbcf13cf4c3b7ee7bc5e8b8ae6684de60fdfcf94b35563121bb79d26"  # as version 0.1.0 sends it
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """The homes, for what only reads."""
    return unpacked(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    """Homes of this test's own."""
    return unpacked(tmp_path)


@pytest.fixture(scope="module")
def expected(opened: Golden) -> Any:
    return json.loads((opened.place / "expected.json").read_text())


# --- memory


def test_memories_are_listed_and_found(opened: Golden, expected: Any):
    known = expected["memory"]
    with opened.memory() as memory:
        assert sorted(one.file for one in memory.list()) == known["files"]
        assert memory.search("which database do the tests use?")[0].file == known["database"]
        assert "Postgres 16" in memory.context("which database do the tests use?")
        assert (memory.search("releases")[0].file, memory.pending()[0].id) == (
            "team/releases.md",
            known["waiting"],
        )
    for whose, words in (
        ({"user": "ines"}, "tabs over spaces"),
        ({"agent": "reviewer"}, "licence"),
    ):
        with opened.memory(**whose) as memory:
            assert words in memory.list()[0].text


def test_rules_hold_a_call(opened: Golden):
    assert "deploys" in json.dumps(opened.json("memory", "rules"))
    push = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}}
    event = {"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": str(opened.project)}
    told = opened.run("hook", given=json.dumps({**event, **push}))
    assert json.loads(told)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_history_has_every_version_and_its_origin(opened: Golden, expected: Any):
    known = expected["memory"]
    with opened.memory() as memory:
        changes = memory.history()
        assert len(changes) == known["history"]
        texts = [one.text for one in memory.history(known["database"])]
    assert [text.split()[-1] for text in texts] == ["March", "database"]
    actions = {one.origin.action for one in changes}
    assert {"save", "edit", "remove", "undo"} <= actions
    (dream,) = opened.json("dream", "status")["dreams"]
    assert (dream["id"], dream["status"]) == (known["dream"], "undone")


def test_changes_are_undone_and_what_was_removed_comes_back(golden: Golden, expected: Any):
    known = expected["memory"]
    with golden.memory() as memory:
        assert memory.undo().files == (known["last"],)
        with pytest.raises(NotFound):
            memory.get(known["last"])
        removed = memory.history(known["gone"])[-1]
        assert memory.undo(removed.id).files == (known["gone"],)
        assert "wiki.example.com" in memory.get(known["gone"]).text
        accepted = memory.accept(known["waiting"])
        assert "previous instructions" in memory.get(accepted.file).text
        before = memory.get(known["database"]).text
        memory.update(known["database"], "Integration tests hit a real Postgres 17 database")
        memory.undo()
        assert memory.get(known["database"]).text == before


def test_words_are_forgotten_in_every_file(golden: Golden):
    with golden.memory() as memory:
        done = memory.forget("zebra")
        assert done.proven
        memory.forget("Postgres 16")
        memory.forget("module_2/part.py")
        with pytest.raises(StoreError, match="forgotten"):
            memory.add("Postgres 16 again")
    for path in (p for p in golden.home.rglob("*") if p.is_file()):
        assert not re.search(rb"zebra|module_2/part", path.read_bytes()), path


# --- sessions


def test_sessions_are_listed_and_shown(opened: Golden, expected: Any):
    listed = {one["id"] for one in opened.json("sessions", "list")["sessions"]}
    assert set(expected["sessions"].values()) <= listed
    for ident in expected["sessions"].values():
        assert "zebra" in opened.run("sessions", "show", ident)


def test_a_resumed_session_sends_the_same_bytes(golden: Golden, expected: Any):
    ident = expected["sessions"]["classic"]
    assert next_requests(golden, ident, "classic") == expected["next"]["classic"]


def test_what_an_older_version_sealed_is_sent_as_it_was(golden: Golden, expected: Any):
    """Lines that are new are those of the version at hand, behind an explanation of their own."""
    with reverie.blocking(session_of(golden, "collapse", expected["sessions"]["collapse"])) as one:
        sealed = [i for i in one.view.items if i.kind == "replaced"]
        old = [p.block.raw for i in sealed for p in i.pieces]
        assert digest(old) == SEALED
        one.add("What was in the first part?")
        sent = [b["text"] for b in one.prepare().anthropic()["messages"][0]["content"]]
    assert [json.loads(raw)["text"] for raw in old] == sent[: len(old)]
    assert len([text for text in sent if text.startswith("[Earlier rounds")]) == 2
    assert sent[len(old)].startswith("[Earlier rounds")
    assert sent[len(old) + 1].startswith("[sealed")


def test_a_stored_result_is_read_back(golden: Golden, expected: Any):
    with reverie.blocking(session_of(golden, "collapse", expected["sessions"]["collapse"])) as one:
        one.add("Read it again")
        sent = json.dumps(one.prepare().anthropic())
        (known,) = re.findall(r"> Bash\W+make part-2\W+(r:\w{6})", sent)
        asked = {"reference": known, "query": "line 199"}
        call = {"type": "tool_use", "id": "toolu_back", "name": "read_back", "input": asked}
        assert "line 199 of src/module_2/part.py" in json.dumps(one.handle(call))


def test_a_new_result_is_stored_beside_the_old_ones(golden: Golden, expected: Any):
    """A client's settings allow it to read there."""
    ident = expected["sessions"]["classic"]
    (before,) = golden.home.rglob(f"{ident}/tool-results")
    old = set(before.iterdir())
    with reverie.blocking(session_of(golden, "classic", ident)) as one:
        one.add("Once more")
        one.prepare()
        use = {"type": "tool_use", "id": "toolu_new", "name": "Bash", "input": {"command": "ls"}}
        (call,) = one.observe({"content": [use], "stop_reason": "tool_use"}).tool_calls
        one.add(call.result("new\n" * 30_000))
        sent = json.dumps(one.prepare().anthropic())
    (new,) = set(before.iterdir()) - old
    assert len(old) > 0
    assert str(new) in sent


def test_a_fitter_knows_the_list_it_gave(golden: Golden, expected: Any):
    """By its originals, from which the version at hand makes its own lines."""
    (_, count, answer), (_, was, before) = next_fitted(golden), expected["fitted"]
    assert count == was
    head, *lines = answer["content"].split("\n")
    assert head == "[build r:a2f9ck; lines with line, 199]"  # earlier versions named no words
    assert lines == before["content"].split("\n")[1:]
    assert "line 199 of src/module_0/part.py" in lines[0]


# --- team and fleet


def test_a_team_goes_on_where_it_was(golden: Golden, expected: Any):
    server = {"REVERIE_HOME": str(golden.place / "team")}
    with golden.serving("team", "serve", env=server) as urls:
        known = expected["team"]
        (state,) = golden.home.rglob("team-sync.json")
        state.write_text(state.read_text().replace(known["url"], urls["url"]))
        link = {"REVERIE_TEAM_URL": urls["url"], "REVERIE_TEAM_TOKEN": known["token"]}
        status = golden.json("team", "status", env=link)
        assert (status["to_push"], status["to_pull"]) == ([], [])
        assert "ines wrote releases.md (version 1)" in golden.run("team", "log", env=link)
        golden.run("memory", "edit", "team/releases.md", "--with", str(_text(golden)))
        done = golden.json("team", "sync", env=link)
        assert ("releases.md" in done["pushed"], done["conflicts"]) == (True, [])
        assert "ines wrote releases.md (version 2)" in golden.run("team", "log", env=link)


def _text(golden: Golden) -> Path:
    path = golden.place / "new.md"
    path.write_text("---\nname: releases\ntype: project\n---\n\nReleases are on Mondays.\n")
    return path


def test_a_fleets_jobs_are_read_and_tried_again(golden: Golden):
    jobs = {one["root"].rpartition("/")[2]: one for one in golden.json("fleet", "list")}
    assert {name: one["state"] for name, one in jobs.items()} == {
        "done": "done",
        "dead": "dead",
        "waiting": "queued",
    }
    said = golden.run("fleet", "status")
    assert "acme is paused" in said
    assert golden.json("fleet", "budget", "acme")["tokens"] == 2_000_000.0
    assert golden.json("fleet", "retry", jobs["dead"]["key"])["state"] == "queued"
    assert golden.json("fleet", "cancel", jobs["waiting"]["key"])["state"] == "cancelled"


# --- other people's disks


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_uninstalling_restores_claude_code_exactly(golden: Golden):
    folder = golden.place / "claude"
    assert "ANTHROPIC_BASE_URL" in (folder / "settings.json").read_text()
    golden.run("uninstall", "claude-code", "--yes", env={"CLAUDE_CONFIG_DIR": str(folder)})
    assert files(folder) == files(golden.place / "claude-before")
    assert not (folder / "skills" / "reverie").exists()


def test_a_plugins_hooks_pass_where_its_program_is_gone_and_are_renewed(golden: Golden):
    folder = golden.place / "claude"
    hooks = folder / "skills/reverie/hooks/hooks.json"
    for rows in json.loads(hooks.read_text())["hooks"].values():
        line = rows[0]["hooks"][0]["command"]
        done = subprocess.run(["/bin/sh", "-c", line], input=b"{}", capture_output=True, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")
    where = {"CLAUDE_CONFIG_DIR": str(folder)}
    golden.run("install", "claude-code", "--plugin", "--yes", env=where)
    assert str(golden.program) in hooks.read_text()
    golden.run("uninstall", "claude-code", "--yes", env=where)
    assert files(folder) == files(golden.place / "claude-before")


def test_a_plugin_of_an_earlier_form_is_named_renewed_and_removed(golden: Golden):
    folder = golden.place / "claude-old"
    again = shutil.copytree(folder, golden.place / "claude-older")
    where = {"CLAUDE_CONFIG_DIR": str(folder)}

    def plugin() -> list[str]:
        done = golden.json("doctor", code=None, env=where)
        return [one["state"] for one in done["checks"] if "--plugin" in one["do"]]

    assert plugin() == ["problem"]
    golden.run("install", "claude-code", "--plugin", "--yes", env=where)
    assert "before_call" not in (folder / "skills/reverie/hooks/hooks.json").read_text()
    assert plugin() == []
    golden.run("uninstall", "claude-code", "--yes", env={"CLAUDE_CONFIG_DIR": str(again)})
    assert files(again) == {}


def test_the_proxy_goes_on_with_the_same_bytes(golden: Golden, expected: Any):
    sent = proxied(golden)
    assert [digest(one) for one in sent] == expected["proxy"]["sent"]
    assert [len(one) for one in sent] == [1, 3, 5]
    assert "Tuesdays" in json.dumps(sent[0])
    listed = golden.json("sessions", "list", env={"REVERIE_HOME": str(golden.place / "proxied")})
    assert len(listed["sessions"]) == 1
