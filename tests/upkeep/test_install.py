"""Clients' settings: put in, taken back, whatever the file looks like."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.clients import CLIENTS, ClientSettings, ProxyAddress
from reverie.clients import install as plans
from reverie.errors import InvalidInput, PathRefused, ReverieError
from reverie.store import Changed, Project
from reverie.text import put, read

pytestmark = pytest.mark.spec("18.client-settings")

HOME = Path("/ada/.reverie")
ADDRESS = ProxyAddress(8788, "T" * 32)
CLAUDE, CODEX, OPENCODE = CLIENTS["claude-code"], CLIENTS["codex"], CLIENTS["opencode"]


def wishes(client: plans.Client) -> tuple[plans.RequiredSetting, ...]:
    return client.wishes(ADDRESS, HOME)


def there(client: plans.Client, text: str | None) -> plans.InstallPlan:
    return plans.install(client, text, wishes(client))


def back(client: plans.Client, text: str | None, plan: plans.InstallPlan) -> plans.InstallPlan:
    assert plan.installation is not None
    return plans.uninstall(client, text, plan.installation)


# --- pure


SETTINGS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["env", "permissions", "allow", "a", "é"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
WRITTEN = st.sampled_from(
    [
        json.dumps,
        lambda v: json.dumps(v, indent=2) + "\n",
        lambda v: json.dumps(v, indent="\t", ensure_ascii=False),
        lambda v: "// top\n" + json.dumps(v, indent=4).replace("\n", " // x\n") + "/* end */",
        lambda v: json.dumps(v, indent=2).replace("\n", "\r\n"),
    ]
)


@given(st.dictionaries(st.sampled_from(["env", "permissions", "b"]), SETTINGS, max_size=3), WRITTEN)
def test_there_and_back_is_the_same_text(value: dict[str, Any], written: Any) -> None:
    text = written(value)
    try:
        plan = there(CLAUDE, text)
    except InvalidInput:
        held = value.get("env", {}), value.get("permissions", {})
        allow = held[1].get("allow", []) if isinstance(held[1], dict) else None
        assert not all(isinstance(h, dict) for h in held) or not isinstance(allow, list)
        return
    assert plan.text is not None
    found = read(plan.text).value
    assert found["env"]["ANTHROPIC_BASE_URL"] == ADDRESS.anthropic
    assert wishes(CLAUDE)[1].value in found["permissions"]["allow"]
    assert back(CLAUDE, plan.text, plan).text == text


@given(st.dictionaries(st.sampled_from(["env", "permissions", "b"]), SETTINGS, max_size=3), WRITTEN)
def test_an_edit_of_the_users_since_stays(value: dict[str, Any], written: Any) -> None:
    try:
        plan = there(CLAUDE, written(value))
    except InvalidInput:
        return
    assert plan.text is not None
    edited = put(plan.text, ("later",), {"mine": [1]}).on(plan.text)
    after = back(CLAUDE, edited, plan)
    assert after.text is not None
    assert read(after.text).value == {**value, "later": {"mine": [1]}}
    assert after.notes == ()


def test_comments_order_and_indentation_stay() -> None:
    text = '{\n\t// why\n\t"z": 1, /* two */\n\t"env": {"A": "1"},\n\t"a": [1,2,], // last\n}\n'
    plan = there(CLAUDE, text)
    assert plan.text is not None
    kept = [line for line in text.splitlines() if "env" not in line]
    assert all(line in plan.text.splitlines() for line in kept[:-2])
    assert "// last" in plan.text
    assert "// why" in plan.text


def test_a_gateway_that_was_set_comes_back() -> None:
    text = '{"env": {"ANTHROPIC_BASE_URL": "https://gate.example"}}'
    plan = there(CLAUDE, text)
    assert plan.text is not None
    later = plan.text.replace('{"env"', '{"b": 1, "env"')
    after = back(CLAUDE, later, plan)
    assert after.text is not None
    assert read(after.text).value == {
        "b": 1,
        "env": {"ANTHROPIC_BASE_URL": "https://gate.example"},
    }


def test_a_value_the_user_has_changed_since_is_kept_and_told() -> None:
    plan = there(CLAUDE, "{}")
    assert plan.text is not None
    later = plan.text.replace(ADDRESS.anthropic, "https://mine.example")
    after = back(CLAUDE, later, plan)
    assert after.text is not None
    assert read(after.text).value == {"env": {"ANTHROPIC_BASE_URL": "https://mine.example"}}
    assert after.notes == ("env.ANTHROPIC_BASE_URL was changed since: it stays as it is",)


def test_twice_is_once() -> None:
    for client in CLIENTS.values():
        once = there(client, None)
        again = there(client, once.text)
        assert again.text == once.text
        assert again.installation is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", '{"env": 3}', '{"env": {}} x', '{"a" 1}', '{"a": nul}', "[]", '"x"',
     '{"a": "\\x"}', "{" * 500, '{"permissions": {"allow": "Read"}}', "{'a': 1}"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        there(CLAUDE, text)
    assert caught.value.where


CODEX_TEXT = """# mine
model = "gpt-5-codex"
notes = '''
openai_base_url = "not this one"
'''

[model_providers.local]
openai_base_url = "nor this"
"""


def test_toml_keys_go_before_tables_and_strings_are_no_keys() -> None:
    plan = there(CODEX, CODEX_TEXT)
    assert plan.text is not None
    data = tomllib.loads(plan.text)
    assert data["openai_base_url"] == ADDRESS.openai
    assert {k: v for k, v in data.items() if k != "openai_base_url"} == tomllib.loads(CODEX_TEXT)
    assert back(CODEX, plan.text, plan).text == CODEX_TEXT
    later = plan.text + "\n[tools]\nweb = true\n"
    assert back(CODEX, later, plan).text == CODEX_TEXT + "\n[tools]\nweb = true\n"


def test_toml_of_another_gateway_is_replaced_and_comes_back() -> None:
    text = CODEX_TEXT.replace(
        "model =", 'openai_base_url = "https://gate.example/v1" # ours\nmodel ='
    )
    plan = there(CODEX, text)
    assert plan.text is not None
    assert tomllib.loads(plan.text)["openai_base_url"] == ADDRESS.openai
    assert "# ours" in plan.text
    assert back(CODEX, plan.text, plan).text == text
    after = back(CODEX, plan.text + "x = [1]\n", plan)
    assert after.text == text + "x = [1]\n"


def test_broken_toml_is_refused() -> None:
    with pytest.raises(InvalidInput, match="TOML"):
        there(CODEX, "model = \n")


@pytest.mark.parametrize("held", ["allow", {"external_directory": "deny"}])
def test_a_rule_of_another_shape_is_the_users_word(held: Any) -> None:
    plan = there(OPENCODE, json.dumps({"permission": held}))
    assert plan.text is not None
    assert read(plan.text).value["permission"] == held
    assert any("permission" in note for note in plan.notes)


# --- on disk


@pytest.fixture
def clients(tmp_path: Path) -> ClientSettings:
    user = tmp_path / "user"
    user.mkdir()
    return ClientSettings(Project.personal(home=tmp_path / "home", environ={"HOME": str(user)}))


def settings(clients: ClientSettings, text: str = '{"a": 1}\n') -> Path:
    path = Path(clients.project.environ["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def installs(clients: ClientSettings, name: str = "claude-code", port: int = 8788) -> None:
    clients.carry_out(clients.install(name, port))


def uninstalls(clients: ClientSettings, name: str = "claude-code") -> None:
    change = clients.uninstall(name)
    assert change is not None
    clients.carry_out(change)


def everything(folder: str | Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"/"
        for p in Path(folder).rglob("*")
    }


@pytest.mark.parametrize("name", list(CLIENTS))
def test_no_residue_where_there_was_nothing(clients: ClientSettings, name: str) -> None:
    installs(clients, name)
    assert everything(clients.project.environ["HOME"])
    uninstalls(clients, name)
    assert everything(clients.project.environ["HOME"]) == {}
    assert not clients.sweep()
    assert not clients.project.home.exists()


def test_bytes_and_mode_come_back(clients: ClientSettings) -> None:
    path = settings(clients, '{\r\n  "a": "\u00e9",\r\n  // b\r\n  "env": {}\r\n}')
    path.chmod(0o644)
    before = path.read_bytes()
    installs(clients)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.read_bytes() != before
    uninstalls(clients)
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_another_port_replaces_the_first_and_goes_back_to_the_beginning(
    clients: ClientSettings,
) -> None:
    path = settings(clients)
    before = path.read_bytes()
    installs(clients, port=8788)
    installs(clients, port=9000)
    assert ":9000/" in path.read_text()
    assert ":8788/" not in path.read_text()
    assert clients.port("claude-code") == 9000
    uninstalls(clients)
    assert path.read_bytes() == before
    assert list(clients.installed()) == []


def test_a_link_is_followed_to_its_file_and_stays_one(
    clients: ClientSettings, tmp_path: Path
) -> None:
    path = settings(clients)
    kept = tmp_path / "dotfiles.json"
    path.rename(kept)
    path.symlink_to(kept)
    change = clients.install("claude-code")
    assert change.path == kept.resolve()
    assert str(kept) in change.diff()
    clients.carry_out(change)
    assert path.is_symlink()
    assert "ANTHROPIC_BASE_URL" in kept.read_text()
    uninstalls(clients)
    assert path.is_symlink()
    assert kept.read_text() == '{"a": 1}\n'


def test_a_dangling_link_a_folder_a_second_name_and_read_only_are_refused(
    clients: ClientSettings,
) -> None:
    path = settings(clients)
    path.chmod(0o444)
    with pytest.raises(PathRefused, match="read-only"):
        clients.install("claude-code")
    path.chmod(0o600)
    os.link(path, path.with_name("other"))
    with pytest.raises(PathRefused, match="second name"):
        clients.install("claude-code")
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(PathRefused, match="link to nothing"):
        clients.install("claude-code")
    path.unlink()
    path.mkdir()
    with pytest.raises(PathRefused, match="not a regular file"):
        clients.install("claude-code")


@pytest.mark.parametrize("text", ['{"a": 1', "\x00", "[]"])
def test_broken_settings_are_named_and_not_touched(clients: ClientSettings, text: str) -> None:
    path = settings(clients, text)
    with pytest.raises(InvalidInput) as caught:
        clients.install("claude-code")
    assert str(path) in str(caught.value)
    assert path.read_text() == text
    assert list(clients.installed()) == []


def test_bytes_that_are_no_text_are_refused(clients: ClientSettings) -> None:
    path = settings(clients)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(PathRefused, match="UTF-8"):
        clients.install("claude-code")


def test_a_file_that_changes_while_the_user_reads_is_not_overwritten(
    clients: ClientSettings,
) -> None:
    path = settings(clients)
    change = clients.install("claude-code")
    path.write_text('{"b": 2}')
    with pytest.raises(Changed):
        clients.carry_out(change)
    assert path.read_text() == '{"b": 2}'
    uninstalls(clients)
    assert path.read_text() == '{"b": 2}'


def test_settings_the_user_has_broken_since_are_named_and_kept(clients: ClientSettings) -> None:
    path = settings(clients)
    installs(clients)
    broken = path.read_text() + "}"
    path.write_text(broken)
    with pytest.raises(InvalidInput, match="cannot be changed"):
        clients.uninstall("claude-code")
    assert path.read_text() == broken
    assert list(clients.installed()) == ["claude-code"]


def test_settings_the_user_has_removed_since_are_no_hindrance(clients: ClientSettings) -> None:
    path = settings(clients)
    installs(clients)
    path.unlink()
    uninstalls(clients)
    assert not path.exists()
    assert list(clients.installed()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"client": 1}', '{"patches": 3}'])
def test_a_damaged_note_says_what_to_do(clients: ClientSettings, text: str) -> None:
    settings(clients)
    installs(clients)
    (clients.project.home / "installed" / "claude-code.json").write_text(text)
    with pytest.raises(ReverieError, match="by hand"):
        clients.uninstall("claude-code")


def test_the_folder_that_clients_are_pointed_to_is_followed(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "c"),
        "CODEX_HOME": str(tmp_path / "x"),
        "XDG_CONFIG_HOME": str(tmp_path / "o"),
    }
    clients = ClientSettings(Project.personal(home=tmp_path / "home", environ=environ))
    (tmp_path / "o" / "opencode").mkdir(parents=True)
    (tmp_path / "o" / "opencode" / "opencode.jsonc").write_text("{ } // mine")
    files = {name: str(clients.install(name).path.relative_to(tmp_path)) for name in CLIENTS}
    assert files == {
        "claude-code": "c/settings.json",
        "codex": "x/config.toml",
        "opencode": "o/opencode/opencode.jsonc",
    }


def test_what_was_kept_and_the_token_are_for_their_owner_alone(clients: ClientSettings) -> None:
    installs(clients)
    for path in clients.project.home.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
