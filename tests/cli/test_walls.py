"""What a command says where something around it is switched off, full, cut off or not whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reverie
from reverie.memory.exports import read_by_user
from reverie.store import ForgottenWords
from reverie.store.lock import alive
from reverie.topics.redaction import ForgetWords

pytestmark = pytest.mark.spec("18.walls")
REVERIE = (sys.executable, "-P", "-m", "reverie.apps.cli")


def run(*words: str, cwd: Path, limit: str = "", **environ: str) -> tuple[int, str, str]:
    """A command in a process of its own; `limit` is what the shell sets before it."""
    line = [*REVERIE, *words]
    if limit:
        line = ["/bin/sh", "-c", f'{limit}; exec "$@"', "sh", *line]
    done = subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, env={**os.environ, **environ}, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_telemetry_without_its_exporter_is_one_line_and_no_traceback(
    home: Path, tmp_path: Path
) -> None:
    more = {"REVERIE_TELEMETRY": "on", "OTEL_TRACES_EXPORTER": "no_such_exporter"}
    code, out, err = run("memory", "add", "The port is 8000.", cwd=tmp_path, **more)
    assert (code, out.strip().endswith("saved")) == (0, True), err
    assert err.count("\n") == 1
    assert err.startswith("reverie: no telemetry: ")
    assert "no_such_exporter" in err


def test_a_chat_says_that_memory_is_off(home: Path, tmp_path: Path) -> None:
    run("off", cwd=tmp_path)
    _, _, err = run("chat", "-p", "Remember that the port is 9000.", cwd=tmp_path)
    assert "memory is off here" in err
    run("on", cwd=tmp_path)
    _, _, err = run("chat", "-p", "Remember that the port is 9000.", cwd=tmp_path)
    assert "memory is off" not in err


@pytest.mark.parametrize("url", ["notaurl", "ftp://x.example", "http://", "localhost:8080"])
@pytest.mark.parametrize("option", ["--upstream", "--upstream-openai"])
def test_a_proxy_refuses_an_upstream_that_is_no_url(
    home: Path, tmp_path: Path, option: str, url: str
) -> None:
    line = [*REVERIE, "proxy", "--port", "0", option, url]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert b"Invalid upstream" in done.stderr
    assert url.encode() in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs linux: /proc")
def test_a_process_that_ended_and_was_not_waited_for_is_dead() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    try:
        assert not alive(pid)
    finally:
        os.waitpid(pid, 0)
    assert alive(os.getpid())


def test_stats_reads_on_a_full_disk(home: Path, tmp_path: Path) -> None:
    reverie.Memory(tmp_path).add("The port is 8000.")
    code, out, err = run("stats", "--json", cwd=tmp_path, limit="ulimit -f 0")
    assert code == 0, err
    assert json.loads(out)


def test_a_fleet_plans_for_memories_that_have_no_session(home: Path, tmp_path: Path) -> None:
    reverie.Memory(tmp_path).add("The port is 8000.")
    reverie.Memory("acme-app").add("The bucket is in Dublin.")
    reverie.Memory("acme-app", user="anna").add("Anna reads French.")
    _, out, _ = run("fleet", "plan", "--all", "--json", cwd=tmp_path)
    planned = {job["root"] for job in json.loads(out)["jobs"]}
    assert str(tmp_path) in planned
    assert len(planned) == 3


def test_a_forget_that_was_cut_off_is_told_at_every_start(home: Path, tmp_path: Path) -> None:
    reverie.Memory(tmp_path).add("The port is 8000.")
    marks = ForgottenWords(home)
    marks.add(ForgetWords.of("blue elephant"), 1.0, done=False)
    marks.close()
    for words in (("chat", "-p", "hello"), ("memory", "list"), ("doctor",)):
        _, out, err = run(*words, cwd=tmp_path)
        assert (out + err).count("A forget was cut off") == 1, words
    run("memory", "forget", "blue elephant", "--yes", cwd=tmp_path)
    _, out, err = run("memory", "list", cwd=tmp_path)
    assert "cut off" not in out + err


def test_an_import_keeps_users_apart(home: Path, tmp_path: Path) -> None:
    facts = [
        ("anna", "Anna reads French."),
        ("bob", "Bob lives in Oslo."),
        ("", "It is in Dublin."),
    ]
    items = [{"id": str(n), "memory": text, "user_id": who} for n, (who, text) in enumerate(facts)]
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps({"results": items}))
    assert run("memory", "import", "--from", "mem0", str(file), "--trust", cwd=tmp_path)[0] == 0
    held = {
        who: {one.text for one in reverie.Memory(tmp_path, user=who).list()}
        for who in ("anna", "bob")
    }
    assert held["anna"] == {"Anna reads French.", "It is in Dublin."}
    assert held["bob"] == {"Bob lives in Oslo.", "It is in Dublin."}
    assert {one.text for one in reverie.Memory(tmp_path).list()} == {"It is in Dublin."}
    file.write_text(json.dumps({"results": items[:1]}))
    assert [user for user, _ in read_by_user("mem0", file)] == [""]


def test_what_an_agent_is_to_be_tells_nothing_of_the_user(home: Path, tmp_path: Path) -> None:
    persona = "I am Sam, a friendly assistant. I like to answer in rhymes."
    agent = tmp_path / "agent.af"
    agent.write_text(json.dumps({"blocks": [{"label": "persona", "value": persona}]}))
    owned = tmp_path / "mem0.json"
    owned.write_text(json.dumps([{"id": "1", "memory": f"{persona} Always.", "agent_id": "sam"}]))
    for system, file in (("letta", agent), ("mem0", owned)):
        assert run("memory", "import", "--from", system, str(file), "--trust", cwd=tmp_path)[0] == 0
    assert [one.type for one in reverie.Memory(tmp_path).list()] == ["reference", "reference"]


def test_the_audit_lists_what_ran_who_changed_and_who_forgot(home: Path, tmp_path: Path) -> None:
    memory = reverie.Memory(tmp_path)
    memory.add("The port is 8000.", name="Port")
    call = {"type": "tool_use", "id": "c", "name": "remember", "input": {"text": "It is in Oslo."}}
    memory.tools.handle(call)
    memory.dream()
    memory.remove(memory.get("Port").file)
    memory.forget("blue elephant")
    run("off", cwd=tmp_path)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    (home / "usage").mkdir(exist_ok=True)
    line = {"id": "a", "source": "dream", "reserved": 1200}
    (home / "usage" / f"{today}.jsonl").write_text(json.dumps(line) + "\n")
    code, out, err = run("doctor", "--audit", "--json", cwd=tmp_path)
    assert code == 0, err
    rows = {(one["who"], one["what"].partition(":")[0]) for one in json.loads(out)["audit"]}
    assert {("user", "remove"), ("user", "forget"), ("dream", "ran unasked")} <= rows
    assert any(what.startswith("changed ") for _, what in rows)
    assert "Oslo" not in out
    assert "elephant" not in out
    assert "8000" not in out
    assert run("doctor", "--audit", cwd=tmp_path)[1].startswith("day")
