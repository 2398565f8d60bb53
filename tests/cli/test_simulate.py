from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.spec("18")
pytest.importorskip("starlette", reason="needs starlette: the extra `server` is not installed")


def test_it_serves_until_it_is_stopped(home: Path, project: Path) -> None:
    log, script = project / "log.jsonl", project / "script.json"
    script.write_text('["as written"]')
    line = [sys.executable, "-m", "reverie.apps.cli", "simulate", "--port", "0", "--json"]
    line += ["--script", str(script), "--log", str(log)]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        told = server.stdout.readline()
        found = json.loads(told)
        assert set(found) == {"url", "log"}
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9}
        body |= {"messages": [{"role": "user", "content": "hello"}]}
        asked = urllib.request.Request(
            f"{found['url']}/v1/messages",
            json.dumps(body).encode(),
            {
                "x-api-key": "k",
                "anthropic-version": "2023-06-01",
                "content-type": "application/json",
            },
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert json.load(answer)["content"][0]["text"] == "as written"
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
        assert "Traceback" not in err
    assert len(log.read_text().splitlines()) == 1
    assert stat.S_IMODE(os.stat(log).st_mode) == 0o600


def test_a_script_that_cannot_be_read_is_refused(run: Run, project: Path) -> None:
    assert "script" in run("simulate", "--script", project / "none.json", code=2).err
    run("simulate", "--port", "70000", code=2)
