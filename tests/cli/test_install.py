"""The package as people install it: a wheel, plainly, and the command is there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("18.install")
QUIET = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", *QUIET, "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(out), str(root)], check=True)
    (made,) = out.glob("*.whl")
    return made


def test_a_plain_installation_has_the_command(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "env"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", *QUIET]
    subprocess.run([*pip, str(wheel)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # what the wheel asks for lies beside the tests; the project's own sources do not
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environ |= {"REVERIE_HOME": str(tmp_path / "home"), "PYTHONSAFEPATH": "1"}

    def runs(*args: str) -> str:
        command = [str(folder / "bin" / "reverie"), *args]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert runs("--version").startswith("reverie ")
    assert "Commands:" in runs("help")
    assert "hi" in runs("-p", "run echo hi", "--permission-mode", "allow")
    code = "import reverie; print(reverie.__file__)"
    found = subprocess.check_output([str(python), "-c", code], env=environ, text=True)
    assert found.startswith(str(site))


def test_the_core_asks_for_little(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith("/METADATA"))
        told = Parser().parsestr(packed.read(name).decode())
        assert not [one for one in packed.namelist() if one.startswith("tests")]
    asked = [one for one in told.get_all("Requires-Dist") or [] if "extra ==" not in one]
    assert sorted(one.partition(">")[0] for one in asked) == [
        "anyio",
        "click",
        "google-re2",
        "markdown-it-py",
        "rich",
    ]
    assert set(told.get_all("Provides-Extra") or []) == {
        *("anthropic", "openai", "semantic", "onnx", "terminal"),
        *("proxy", "web", "mcp", "server", "team", "bridge", "fleet", "otel"),
        *("pydantic-ai", "langchain", "openai-agents", "claude-agent"),
    }
