"""`store=`: originals beyond the process, and files for a tool of the caller's own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.wire import Format
from tests.api.lists import FORMS, MODELS, results_of
from tests.api.rounds import one_round, reader, rounds

pytestmark = pytest.mark.spec("18.store")


@pytest.mark.parametrize("form", FORMS)
def test_stubs_name_the_callers_own_tool_and_a_file_that_holds_all(tmp_path: Path, form: Format):
    messages = [*rounds(150, form, lines=60), *one_round(900, "build", "long\n" * 9_000, form)]
    tools = [reader("Read", form)]
    sent = reverie.fit(
        messages, model=MODELS[form], tools=tools, store=tmp_path, via="Read", marks=False
    )
    there = json.dumps(list(sent))
    assert sent.saved > sent.tokens
    assert "read_back" not in there
    assert f"What r:abc123 names is whole in {tmp_path}/abc123.txt; `Read` reads it." in there
    shown = results_of(list(sent), form)
    for name, text in results_of(messages, form).items():
        if shown.get(name) != text:
            held = [p for p in tmp_path.glob("*.txt") if text in p.read_text()]
            assert len(held) == 1, name
            assert held[0].stem in there


def test_what_is_read_from_the_store_is_not_stored_again(tmp_path: Path):
    tools = [reader("Read", "chat")]
    messages = rounds(3, lines=2_000)
    more: dict[str, Any] = {"model": "gpt-5", "tools": tools, "store": tmp_path, "via": "Read"}
    first = reverie.fit(messages, **more)
    path = re.search(rf"{tmp_path}/\w+\.txt", json.dumps(list(first)))
    assert path is not None
    call, result = one_round(9, "Read", Path(path[0]).read_text(), "chat")
    call["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": path[0]})
    sent: Any = reverie.fit([*messages, call, result], **more)
    assert sent[-1] is result
    call["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "/elsewhere/big.txt"})
    other: Any = reverie.fit([*messages, call, result], **more)
    assert other[-1]["content"] != result["content"]


def test_without_the_tool_a_store_is_no_way_back(tmp_path: Path):
    messages = rounds(30)
    sent = reverie.fit(messages, model="gpt-5", store=tmp_path, via="Read")
    assert list(sent) == messages
    assert not list(tmp_path.iterdir())


OTHER = """
import json, sys, reverie
messages = json.load(open(sys.argv[1]))
fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=sys.argv[2])
sent = fitter.fit(messages)
print(json.dumps([list(sent), sent.before]))
"""


def test_another_process_knows_a_list_that_was_written_over(tmp_path: Path):
    store, path = tmp_path / "store", tmp_path / "list.json"
    full = rounds(40)
    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=store)
    over = [*fitter.fit(full), {"role": "user", "content": "go on"}]
    path.write_text(json.dumps(over))
    run = [sys.executable, "-c", OTHER, str(path), str(store)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    sent, before = json.loads(done.stdout)
    assert done.stderr == ""
    assert sent == list(fitter.fit([*full, over[-1]]))
    assert before > 10 * fitter.fit([*full, over[-1]]).tokens


def test_a_list_that_no_store_knows_is_sent_as_it_is_and_says_so(tmp_path: Path):
    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=tmp_path / "one")
    over = list(fitter.fit(rounds(40)))
    notices: list[str] = []
    other = reverie.Fitter(
        model="gpt-5",
        tools=reverie.tools(),
        store=tmp_path / "two",
        on_notice=lambda n: notices.append(n.text),
    )
    assert list(other.fit(over)) == over
    assert len(notices) == 1
    assert "store=" in notices[0]


def test_a_torn_or_foreign_line_of_the_store_is_passed_over(tmp_path: Path):
    full = rounds(40)
    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=tmp_path)
    over = json.loads(json.dumps(fitter.fit(full)))
    (kept,) = (tmp_path / "lists").glob("*.jsonl")
    with kept.open("ab") as file:
        file.write(b'{"message": {"role"')
    (tmp_path / "lists" / "foreign.jsonl").write_bytes(b"\xff\xfe no json\n[]\n")
    again = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=tmp_path)
    assert again.fit(over).before == fitter.fit(full).before


def test_true_is_the_projects_own_folder_and_forgetting_reaches_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=True)
    fitter.fit([*rounds(40), {"role": "user", "content": "my sister lives in Tartu"}])
    held = [p for p in home.rglob("*.jsonl") if b"Tartu" in p.read_bytes()]
    assert len(held) == 1
    assert reverie.Memory(tmp_path).forget("Tartu").proven
    assert b"Tartu" not in held[0].read_bytes()


def test_a_store_that_cannot_be_written_raises_and_names_it(tmp_path: Path):
    from reverie.errors import ReverieError

    (tmp_path / "file").write_text("in the way")
    fitter = reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=tmp_path / "file")
    with pytest.raises(ReverieError, match="file"):
        fitter.fit(rounds(40))
