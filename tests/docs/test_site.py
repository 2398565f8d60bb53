"""The site is built without a warning and loads nothing from elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts import pages

REMOTE = "https://cdn.example.com/x"


@pytest.mark.spec("project.docs-site")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", f'<script src="{REMOTE}.js"></script>'),
        ("a.html", '<script src="//cdn.example.com/x.js"></script>'),
        ("a.html", f'<link rel="stylesheet" href="{REMOTE}.css">'),
        ("a.html", f'<link rel="preconnect" href="{REMOTE}">'),
        ("a.html", f'<img src="{REMOTE}.png">'),
        ("a.html", f'<img src="a.png" srcset="{REMOTE}.png 2x">'),
        ("a.html", f'<iframe src="{REMOTE}"></iframe>'),
        ("a.html", f"<style>@import '{REMOTE}.css';</style>"),
        ("a.html", f'<p style="background: url({REMOTE}.png)">'),
        ("a.html", f"<script>fetch('{REMOTE}')</script>"),
        ("a.css", f'@import "{REMOTE}.css";'),
        ("a.css", f"@font-face {{ src: url('{REMOTE}.woff2') }}"),
        ("a.js", f'import("{REMOTE}.js")'),
        ("deep/a.html", f'<video poster="{REMOTE}.png"></video>'),
    ],
)
def test_what_a_browser_would_fetch_from_elsewhere_is_found(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / name).write_text(text)
    (line,) = pages.remote(tmp_path)
    assert line.startswith(f"{name}: it loads ")
    assert "cdn.example.com" in line


@pytest.mark.spec("project.docs-site")
def test_a_link_and_what_lies_in_the_site_are_no_loads(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        f'<a href="{REMOTE}">x</a><script src="a.js"></script><link rel="next" href="b.html">'
        '<link rel="stylesheet" href="_static/a.css?v=1"><img src="data:image/png;base64,AA">'
        f"<p>{REMOTE}</p><pre>fetch('{REMOTE}')</pre>"
    )
    (tmp_path / "a.css").write_text(".x { background: url(a.png) } /* see https://example.com */")
    assert list(pages.remote(tmp_path)) == []


@pytest.mark.integration
@pytest.mark.spec("project.docs-built")
@pytest.mark.timeout(300)
def test_the_site_is_built_without_a_warning_and_loads_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pages.build_site(tmp_path) == 0, capfd.readouterr().err
    html = tmp_path / "html"
    assert 'url=docs/index.html"' in (html / "index.html").read_text()
    start = (html / "docs" / "index.html").read_text()
    for page in ("../README.html", "layers/1-tool-results.html", "reference/api.html"):
        assert f'href="{page}"' in start
    assert 'id="memoryadd"' in (html / "docs" / "reference" / "api.html").read_text()


@pytest.mark.integration
@pytest.mark.spec("project.docs-built")
@pytest.mark.timeout(120)
def test_a_page_with_a_fault_is_not_built(root: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copy(root / "docs" / "conf.py", tmp_path / "docs")
    shutil.copytree(root / "docs" / "site", tmp_path / "docs" / "site")
    shutil.copy(root / "pyproject.toml", tmp_path)
    page = tmp_path / "docs" / "index.md"
    page.write_text("# Top\n\nWords.\n")
    assert pages.build(tmp_path, tmp_path / "out") == 0
    page.write_text("# Top\n\n[x](gone.md)\n")
    assert pages.build(tmp_path, tmp_path / "out") != 0
