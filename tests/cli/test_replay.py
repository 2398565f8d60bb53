"""`reverie replay`: files and sessions in, figures, JSON and a page out."""

from __future__ import annotations

import gzip
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.apps.replay import CAVEAT
from tests.cli.conftest import Run, library
from tests.proxy.clients import Client, engine
from tests.replay.courses import session

pytestmark = pytest.mark.spec("B14")
# fmt: off
KEYS = [
    "session", "policy", "tail", "cost", "naive_cost", "recovery", "refind", "summaries", "peak",
    "breaks", "facts", "facts_here", "near", "far", "shown_whole",
]
# fmt: on


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(session(12, size=6_000, far=True)) + "\n")
    return path


def test_json_is_a_list_with_one_object_a_session(run: Run, file: Path, home: Path) -> None:
    found = run("replay", file, file, "--policy", "collapse", "--tail", "5000", "--json").json()
    assert len(found) == 2
    assert list(found[0])[: len(KEYS)] == KEYS
    one = found[0]
    assert (one["session"], one["policy"], one["tail"]) == ("s-1", "collapse", 5_000)
    assert 0 < one["cost"] < one["naive_cost"]
    for distance in ("near", "far"):
        assert list(one[distance]) == ["here", "by_reference", "rerun", "lost"]
    assert 0 <= one["shown_whole"] <= 1
    assert (one["breaks"], one["facts"], one["facts_here"]) == (0, 1, 1)
    assert not home.exists()


def test_prices_are_a_providers_a_models_or_listed(run: Run, file: Path) -> None:
    def cost(*given: str) -> int:
        return run("replay", file, "--policy", "classic", *given, "--json").json()[0]["cost"]

    plain = cost()
    assert cost("--prices", "anthropic") == plain
    assert cost("--prices", "local") < cost("--prices", "openai") < plain
    assert cost("--prices", "read=0.1,write=1.25,write_long=2,output=5") == plain
    assert cost("--prices", "gpt-4o") != plain
    for wrong in ("nobody-knows", "read=many", "rent=1", "read=-1"):
        assert wrong.partition("=")[0] in run("replay", file, "--prices", wrong, code=2).err


@pytest.mark.spec("B14.billed")
def test_what_runs_behind_a_session_is_billed(run: Run, file: Path) -> None:
    def told(policy: str, *given: str) -> dict[str, Any]:
        return run("replay", file, "--policy", policy, *given, "--json").json()[0]

    asked = ("--through", "session")
    found = {policy: told(policy, *asked) for policy in ("naive", "classic", "collapse")}
    assert found["naive"]["background"] == {"notes": 0, "extractions": 0, "cost": 0}
    for policy in ("classic", "collapse"):
        one = found[policy]
        assert one["background"]["extractions"] > 0 == one["background"]["notes"]
        parts = one["cost"] + one["recovery"] + one["refind"] + one["background"]["cost"]
        assert abs(one["billed"] - parts) <= 2
    # another program's session comes through the proxy, whose rules cost nothing
    proxied = told("collapse")
    assert (proxied["through"], proxied["background"]["cost"]) == ("proxy", 0)
    assert proxied["billed"] < found["collapse"]["billed"]


def test_a_packed_file_and_a_folder_are_the_same(run: Run, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    (folder / "notes.txt").write_text("no session")
    plain = run("replay", file, "--json").json()[0]
    packed = run("replay", folder, "--json").json()
    assert len(packed) == 1
    assert {**packed[0], "file": ""} == {**plain, "file": ""}


def test_people_get_tables_and_are_told_what_it_cannot_show(run: Run, file: Path) -> None:
    said = run("replay", file, "--policy", "naive", code=0).out
    assert "1.000" in said
    assert CAVEAT in said
    assert "recovery" in said
    said = run("replay", file, file, code=0).out
    assert "\nall " in said
    assert said.startswith("collapse, tail 40,000: 2 sessions")


def test_a_session_too_large_for_the_window_is_said(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_CONTEXT_WINDOW", "20000")
    said = run("replay", file, "--policy", "naive", code=0).out
    assert "would have failed" in said
    found = run("replay", file, "--policy", "naive", "--json").json()[0]
    assert found["over_window"] > 0
    assert found["window"] == 20_000


def test_the_page_is_written_and_nobody_else_reads_it(run: Run, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    run("replay", file, "--html", out, code=0)
    text = out.read_text()
    assert text.startswith("<!doctype html>")
    assert "collapse near" in text
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o600
    run("replay", file, "--html", out, "--json", "--policy", "classic", code=0)
    assert out.read_text() != text


def test_a_session_of_the_proxys_has_the_head_its_client_sent(run: Run, home: Path) -> None:
    async def talk() -> None:
        made = engine(home)
        client = Client(made, "").says("Which port does it listen on?")
        await client.asks("Port 8080.", system="", tools=[])
        await made.aclose()

    anyio.run(talk)
    (file,) = home.glob("projects/*/*.jsonl")
    (found,) = run("replay", file, "--json").json()
    assert found["peak"] < 100


def test_the_settings_choose_where_nothing_is_given(run: Run, file: Path, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text('{"contextPolicy": "collapse", "collapseTail": 7000}')
    found = run("replay", file, "--json").json()[0]
    assert (found["policy"], found["tail"]) == ("collapse", 7_000)


def test_a_file_that_cannot_be_replayed_is_named_and_the_others_go_on(
    run: Run, file: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("not a session\n")
    done = run("replay", bad, file, "--json", code=2)
    assert len(json.loads(done.out)) == 1
    assert "bad.jsonl" in done.err
    assert run("replay", bad, "--json", code=2).error["type"] == "ImportFailed"
    assert run("replay", tmp_path / "gone.jsonl", "--json", code=2).error["type"] == "NotFound"
    assert "no session of this project" in run("replay", "abcd", code=2).err
    assert "no session of this project" in run("replay", "not-an-id!", code=2).err
    assert "off, store, classic, collapse" in run("replay", file, "--policy", "best", code=2).err
    run("replay", file, "--tail", "0", code=2)
    run("replay", code=2)


def test_a_session_of_ours_by_id_by_file_and_exported(run: Run, made: str, tmp_path: Path) -> None:
    by_id = run("replay", made[:13], "--json").json()[0]
    assert (by_id["session"], by_id["program"], by_id["notes"]) == (made, "reverie", [])
    assert by_id["requests"] == 2
    own = run("replay", library().path / f"{made}.jsonl", "--json").json()[0]
    out = tmp_path / "exported.jsonl"
    run("sessions", "export", made, "--out", out, code=0)
    exported = run("replay", out, "--json").json()[0]
    assert {**own, "file": ""} == {**by_id, "file": ""} == {**exported, "file": ""}
    assert by_id["shown_whole"] == 0.0
    naive = run("replay", made, "--policy", "naive", "--json").json()[0]
    assert naive["peak"] > by_id["peak"] + 20_000


def test_a_stored_result_that_is_gone_is_said(run: Run, made: str) -> None:
    stored = next((library().path / made / "tool-results").iterdir())
    stored.unlink()
    found = run("replay", made, "--json").json()[0]
    assert "is gone" in found["notes"][0]


def test_escapes_in_a_name_stay_out_of_the_terminal(run: Run, file: Path) -> None:
    text = file.read_text().replace('"s-1"', '"s\\u001b]0;pwned\\u0007-1"')
    file.write_text(text)
    assert "\x1b" not in run("replay", file, code=0).out


def test_a_recorded_session(run: Run, recorded: Callable[[str], Path]) -> None:
    found = run("replay", recorded("9f26971d"), "--policy", "collapse", "--json").json()[0]
    assert found["session"].startswith("9f26971d")
    assert found["cost"] < found["naive_cost"]
    assert found["thinking"]["refused"] == found["breaks"] == found["pairing_faults"] == 0
    assert found["facts"] == found["facts_here"]


def test_progress_is_for_terminals(terminal: Callable[..., str], file: Path) -> None:
    seen = terminal("replay", file)
    assert "of naive" in seen


def test_the_page_about_it_names_what_there_is(root: Path, run: Run) -> None:
    text = (root / "docs" / "replay.md").read_text()
    helped = run("replay", "--help").out
    for option in ("--policy", "--tail", "--html", "--json"):
        assert option in text
        assert option in helped
    for key in KEYS:
        assert f"`{key}`" in text
