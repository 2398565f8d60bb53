"""Pages lead somewhere, something leads to them, and a fault in either is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import pages

pytestmark = pytest.mark.spec("project.docs-links")
SOUND = {
    "README.md": "# Top\n\n[a](docs/a.md#b-c), [out](https://example.com/x), `[code](gone.md)`\n",
    "docs/index.md": "# Site\n\n```{toctree}\n:glob:\n\nOverview </README>\na\nlater*\n```\n",
    "docs/a.md": "# A\n\n## B, c\n\n![p](p.png)\n\n```\n[x](gone.md)\n```\n",
    "docs/p.png": "",
    "src/x.py": '"""See docs/a.md."""\n',
}


def told(folder: Path, **changed: str) -> list[str]:
    files = {
        **SOUND,
        **{name.replace("__", "/").replace("_md", ".md"): t for name, t in changed.items()},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(pages.problems(folder))


def test_the_pages_of_this_repository_lead_somewhere(root: Path) -> None:
    assert list(pages.problems(root)) == []


def test_sound_pages_are_accepted(tmp_path: Path) -> None:
    assert told(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](gone.md)", "docs/a.md:1: no such file: gone.md"),
        ("[x](a.md#b-d)", "docs/a.md:1: no such heading: a.md#b-d"),
        ("# A\n\n[x](#nowhere)", "docs/a.md:3: no such heading: #nowhere"),
        ("![x](q.png)", "docs/a.md:1: no such file: q.png"),
        ('<img src="q.png">', "docs/a.md:1: no such file: q.png"),
        ("[x](/docs/a.md)", "a path from the root of the file system"),
        ("[x](../docs)", "a folder, which the site has no page for"),
        ("[x](../../b.md)", "a path out of the repository"),
        ("| a |\n|---|\n| [x](gone.md) |", "no such file: gone.md"),
        ("[x][y]\n\n[y]: gone.md", "no such file: gone.md"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in line for line in told(tmp_path, docs__a_md=text))


def test_a_page_that_nothing_leads_to_is_found(tmp_path: Path) -> None:
    (line,) = told(tmp_path, docs__lost_md="# Lost\n")
    assert line.startswith("docs/lost.md: no table of contents leads to it")
    assert told(tmp_path / "b", docs__later_1_md="# It has come\n") == []


def test_an_entry_without_a_page_is_found(tmp_path: Path) -> None:
    text = SOUND["docs/index.md"].replace("a\n", "a\nb\n", 1)
    assert told(tmp_path, docs__index_md=text) == [
        "docs/index.md: its table of contents names a page that is not there: b"
    ]


def test_a_page_that_only_the_code_names_is_found(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "y.py").write_text('\nDO = "see docs/gone.md"\n')
    assert told(tmp_path) == ["src/y.py:2: it names a page that is not there: docs/gone.md"]


def test_anchors_are_those_of_a_code_host() -> None:
    found = pages.read("# `reverie memory check`\n\n# What's new?\n\n# A  b\n\n# Größe\n\n# A  b\n")
    assert found.anchors == {"reverie-memory-check", "whats-new", "a--b", "größe", "a--b-1"}
