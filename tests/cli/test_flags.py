from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reverie.settings import FLAGS
from tests.cli.conftest import Run, assert_private

pytestmark = [pytest.mark.spec("18"), pytest.mark.spec("15")]


def test_all_flags_with_their_origin(run: Run, home: Path) -> None:
    found = run("flags", "--json").json()
    assert set(found) == {"file", "flags", "problems"}
    assert [row["name"] for row in found["flags"]] == list(FLAGS)
    keys = {"name", "value", "default", "source", "place", "trusted", "aliases", "section", "about"}
    assert all(set(row) == keys for row in found["flags"])
    assert found["file"] == str(home / "flags.json")
    assert not home.exists()


def test_set_and_unset(run: Run, home: Path) -> None:
    assert run("flags", "unset", "dream").out == "dream is on (default)\n"
    assert not home.exists()
    assert run("flags", "set", "dream", "off").out == "dream is off (flags)\n"
    assert json.loads((home / "flags.json").read_text()) == {"dream": False}
    assert_private(home)
    found = run("flags", "set", "tengu_onyx_plover", "on", "--json").json()
    assert (found["name"], found["value"], found["source"]) == ("dream", True, "flags")
    set_table = ("flags", "set", "tool_result_thresholds", '{"Bash": 1000}', "--json")
    assert run(*set_table).json()["value"] == {"Bash": 1000}
    run("flags", "unset", "dream", code=0)
    assert list(json.loads((home / "flags.json").read_text())) == ["tool_result_thresholds"]
    assert_private(home)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("dreem", "off", "Did you mean dream?"), ("dream", "maybe", "must be one of")],
)
def test_what_cannot_be_set_is_refused(
    run: Run, home: Path, name: str, value: str, said: str
) -> None:
    assert said in run("flags", "set", name, value, code=2).err
    assert run("flags", "set", name, value, "--json", code=2).error["type"] == "SettingsError"
    assert not home.exists()


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe", b'{"dream": true, "dream": false}'])
def test_a_file_of_someone_is_not_lost(run: Run, home: Path, body: bytes) -> None:
    home.mkdir(0o700)
    (home / "flags.json").write_bytes(body)
    run("flags", "set", "recall", "off", code=2)
    assert (home / "flags.json").read_bytes() == body
    assert run("flags", "--json").json()["problems"]


def test_what_goes_before_the_file_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_FLAG_DREAM", "on")
    done = run("flags", "set", "dream", "off", code=0)
    assert done.out == "dream is on (environment)\n"
    assert "REVERIE_FLAG_DREAM" in done.err


def test_a_running_process_sees_the_switch(run: Run, home: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from reverie.settings.flags import Flags\n"
        f"flags = Flags({{}}, home=Path({str(home)!r}))\n"
        "for _ in sys.stdin: print(flags.on('recall'), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def asked() -> str:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdin.write("?\n")
            other.stdin.flush()
            return other.stdout.readline().strip()

        assert asked() == "True"
        run("flags", "set", "recall", "off", code=0)
        assert asked() == "False"
        run("flags", "unset", "recall", code=0)
        assert asked() == "True"
        other.stdin.close()


def test_two_who_switch_at_once_both_count(home: Path, project: Path) -> None:
    names = ["dream", "recall", "history_snip", "search_past"]

    def sets(name: str) -> int:
        line = [sys.executable, "-m", "reverie.apps.cli", "flags", "set", name, "off"]
        return subprocess.run(line, capture_output=True, check=False, env=os.environ).returncode

    with ThreadPoolExecutor(len(names)) as pool:
        assert list(pool.map(sets, names)) == [0] * len(names)
    assert json.loads((home / "flags.json").read_text()) == dict.fromkeys(names, False)
