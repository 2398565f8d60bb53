"""What is built and uploaded: versions that agree, links that work elsewhere, docs in the sdist."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import reverie
from scripts.readme_hook import absolute

FILES, RAW = "https://host/r/blob/v1/", "https://host/r/raw/v1/"


@pytest.mark.spec("project.packaging")
@pytest.mark.parametrize(
    ("text", "led"),
    [
        ("[a](docs/a.md#b)", f"[a]({FILES}docs/a.md#b)"),
        ("[a](./docs/a.md)", f"[a]({FILES}docs/a.md)"),
        ("![p](docs/p.png)", f"![p]({RAW}docs/p.png)"),
        ("[![p](p.svg)](docs/a.md)", f"[![p]({RAW}p.svg)]({FILES}docs/a.md)"),
        ('<img src="p.png" width="3">', f'<img src="{RAW}p.png" width="3">'),
        ("[a](#here) [b](https://x/y) [c](mailto:a@b)",) * 2,
        ("`f[0](y)`\n```python\ng[0](y)\n```\n",) * 2,
    ],
)
def test_a_relative_link_is_led_to_the_repository(text: str, led: str) -> None:
    assert absolute(text, FILES, RAW) == led


@pytest.mark.spec("project.packaging")
def test_the_version_is_one(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## \[([\d.]+)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert project["version"] == reverie.__version__ == newest[1]
    assert {"Homepage", "Documentation", "Source", "Changelog"} <= set(project["urls"])


@pytest.mark.spec("project.packaging")
def test_windows_is_told_in_one_sentence() -> None:
    code = "import sys; sys.platform = 'win32'; import reverie"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Reverie does not run on Windows: it needs a POSIX system's file locks. "
        "Use it under WSL 2, or on Linux or macOS."
    )


@pytest.mark.integration
@pytest.mark.spec("project.packaging-built")
@pytest.mark.timeout(120)
def test_what_is_built_holds_the_docs_and_no_relative_link(root: Path, tmp_path: Path) -> None:
    """Without an index: the build tools are in the lock."""
    line = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel"]
    subprocess.run([*line, "-d", str(tmp_path)], cwd=root, check=True, capture_output=True)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {
        "docs/index.md",
        "docs/conf.py",
        "CHANGELOG.md",
        "Makefile",
        "scripts/pages.py",
    } <= names
    assert not [name for name in names if name.startswith(("docs/_build", "bench/out", ".venv"))]
    with zipfile.ZipFile(wheel) as packed:
        (about,) = (n for n in packed.namelist() if n.endswith(".dist-info/METADATA"))
        text = packed.read(about).decode()
        assert all(n.startswith(("reverie/", "reverie-")) for n in packed.namelist())
        tables = {n for n in packed.namelist() if "/data/" in n}
    source = root / "src"
    assert tables == {p.relative_to(source).as_posix() for p in source.glob("reverie/*/data/*.*")}
    assert {"reverie/rules/data/words.tsv", "reverie/secrets/data/gitleaks.tsv"} <= tables
    links = re.findall(r"\]\(([^)\s]+)", text)
    assert len(links) > 10
    assert [one for one in links if not one.startswith(("https://", "#"))] == []
