"""Read, Write, Edit, Glob and List."""

from __future__ import annotations

import base64
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.errors import StoreError
from reverie.store import digest
from reverie.toolbox import put
from tests.conftest import Scale
from tests.faults import run_with_error
from tests.tools.kit import Place, snapshot, use

pytestmark = pytest.mark.spec("13")

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


# --- Read


async def test_lines_have_numbers_and_a_long_file_says_how_to_read_on(place: Place) -> None:
    (place.root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 3001)))
    box = place.box()
    first = await use(box, "Read", file_path="a.txt")
    assert first.text.splitlines()[0] == "     1\tline 1"
    assert "Read on with offset 2001" in first.text
    second = await use(box, "Read", file_path="a.txt", offset=2001)
    assert second.text.splitlines()[0] == "  2001\tline 2001"
    assert second.text.splitlines()[-1] == "  3000\tline 3000"
    past = await use(box, "Read", file_path="a.txt", offset=4000)
    assert "3,000 lines" in past.text
    part = await use(box, "Read", file_path="a.txt", offset=5, limit=2)
    assert [r.strip() for r in part.text.splitlines()[:2]] == ["5\tline 5", "6\tline 6"]


async def test_every_line_can_be_reached_by_reading_on(place: Place) -> None:
    text = "".join(f"{n}:{'x' * (n % 300)}\n" for n in range(4_000))
    (place.root / "a.txt").write_text(text)
    box, offset, got = place.box(), 1, []
    while True:
        found = await use(box, "Read", file_path="a.txt", offset=offset)
        assert len(found.text) <= place.settings.result_characters + 300
        *rows, last = found.text.splitlines()
        more = last.startswith("[")
        got += [r.split("\t", 1)[1] for r in (rows if more else [*rows, last])]
        if not more:
            break
        offset = int(last.rsplit(" ", 1)[1].rstrip("]"))
    assert got == text.splitlines()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\0\1\2\3" * 100, "binary"),
        (b"", "empty"),
        ("\ufeffhello\n".encode(), "     1\thello"),
        (b"caf\xe9\n", "caf\N{REPLACEMENT CHARACTER}"),
        (b"one\r\ntwo\r\n", "     2\ttwo"),
        ("x".encode("utf-16"), "binary"),
        (b"x" * 5_000, "3,000 more bytes in this line"),
        (b"a\xf0\x9f\x98\x80" * 900, "more bytes in this line"),
    ],
)
async def test_any_bytes_give_an_answer(place: Place, data: bytes, says: str) -> None:
    (place.root / "f").write_bytes(data)
    found = await use(place.box(), "Read", file_path="f")
    assert says in found.text
    assert len(found.text) < 9_000


async def test_pictures_are_shown_and_large_ones_refused(place: Place) -> None:
    (place.root / "p.txt").write_bytes(PNG)
    (place.root / "w").write_bytes(b"RIFF\0\0\0\0WEBPVP8 ")
    (place.root / "big.png").write_bytes(PNG + b"x" * 4_000_000)
    box = place.box()
    found = await use(box, "Read", file_path="p.txt")
    assert found.content[0]["source"]["media_type"] == "image/png"
    assert base64.b64decode(found.content[0]["source"]["data"]) == PNG
    assert (await use(box, "Read", file_path="w")).content[0]["source"][
        "media_type"
    ] == "image/webp"
    assert (await use(box, "Read", file_path="big.png")).is_error


async def test_what_would_block_or_never_end_is_refused(place: Place) -> None:
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place.root / "sock"))
        (place.root / "loop").symlink_to("loop")
        box = place.box()
        for name, says in {
            "pipe": "pipe",
            "sock": "socket",
            "/dev/zero": "device",
            "/dev/tty": "device",
            "loop": "link",
            ".": "folder",
            "none": "no such file",
            "a\0b": "NUL",
            "x" * 5_000: "longer than",
            "x" * 300: "opened",
            "": "empty",
        }.items():
            found = await use(box, "Read", file_path=name)
            assert found.is_error, name
            assert says in found.text, found.text


def test_huge_files_in_bounded_memory(place: Place, scale: Scale) -> None:
    """One enormous line, a sparse gigabyte, a hundred megabytes of lines: in another process."""
    with (place.root / "line").open("wb") as file:
        for _ in range(scale.pick(128, 1_024)):
            file.write(b"x" * (1 << 20))
    with (place.root / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    many = place.root / "many"
    with many.open("wb") as file:
        for _ in range(100):
            file.write((b"y" * 99 + b"\n") * 9_999 + b"z\n" * 50)
    script = f"""
import anyio, resource
from pathlib import Path
from tests.tools.kit import Place, use
async def main():
    box = Place(Path({str(place.base)!r})).box()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one = await use(box, "Read", file_path="many", offset=1_004_900)
    assert "1004900\\tz" in one.text, one.text[:200]
    two = await use(box, "Read", file_path="line")
    assert "more bytes in this line" in two.text and len(two.text) < 4_000, two.text[:200]
    assert "binary" in (await use(box, "Read", file_path="sparse")).text
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
anyio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64_000  # kilobytes


# --- Write and Edit


async def test_a_new_file_is_written_with_its_folders(place: Place) -> None:
    found = await use(place.box(), "Write", file_path="a/b/c.txt", content="hé\n")
    assert not found.is_error, found.text
    assert (place.root / "a/b/c.txt").read_bytes() == "hé\n".encode()
    assert [p.name for p in (place.root / "a/b").iterdir()] == ["c.txt"]


async def test_an_existing_file_needs_a_read_first_and_keeps_its_mode(place: Place) -> None:
    path = place.root / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    box = place.box()
    refused = await use(box, "Write", file_path="run.sh", content="new")
    assert refused.is_error
    assert "Read it first" in refused.text
    assert path.read_text() == "old"
    await use(box, "Read", file_path="run.sh")
    assert not (await use(box, "Write", file_path="run.sh", content="new")).is_error
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o751
    # its own write counts as read
    assert not (await use(box, "Write", file_path="run.sh", content="newer")).is_error


async def test_edit_needs_a_read_and_fails_on_a_changed_file(place: Place) -> None:
    path = place.root / "a.py"
    path.write_text("x = 1\ny = 2\n")
    box = place.box()
    change = {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 9"}
    assert "not read yet" in (await use(box, "Edit", **change)).text
    await use(box, "Read", file_path="a.py")
    path.write_text("x = 1\ny = 3\n")
    stale = await use(box, "Edit", **change)
    assert stale.is_error
    assert "changed since" in stale.text
    assert path.read_text() == "x = 1\ny = 3\n"
    await use(box, "Read", file_path="a.py")
    done = await use(box, "Edit", **change)
    assert "     1\tx = 9" in done.text
    path.unlink()
    assert "gone" in (await use(box, "Edit", **{**change, "new_string": "x = 8"})).text
    assert not path.exists()


@pytest.mark.parametrize(
    ("old", "new", "every", "says"),
    [
        ("zzz", "q", False, "not in the file"),
        ("a", "b", False, "3 times"),
        ("", "b", False, "empty"),
        ("a", "a", False, "the same"),
        ("a", "\ud800", True, "half a character"),
    ],
)
async def test_edits_that_cannot_be(
    place: Place, old: str, new: str, every: bool, says: str
) -> None:
    path = place.root / "f"
    path.write_text("a a a\n")
    box = place.box()
    await use(box, "Read", file_path="f")
    found = await use(box, "Edit", file_path="f", old_string=old, new_string=new, replace_all=every)
    assert found.is_error
    assert says in found.text
    assert path.read_text() == "a a a\n"


async def test_edit_leaves_every_other_byte(place: Place) -> None:
    path = place.root / "f"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xff\r\nthree")
    box = place.box()
    await use(box, "Read", file_path="f")
    await use(box, "Edit", file_path="f", old_string="one\n", new_string="1\n1\n")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n1\r\ntwo\xff\r\nthree"
    await use(box, "Edit", file_path="f", old_string="t", new_string="T", replace_all=True)
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n1\r\nTwo\xff\r\nThree"


async def test_a_link_put_in_the_way_after_permission_is_not_followed(place: Place) -> None:
    """Permission is for the real file; what stands there later is another one."""
    folder = place.root / "d"
    folder.mkdir()
    (folder / "f").write_text("mine")
    (place.outside / "f").write_text("theirs")
    box = place.box()
    await use(box, "Read", file_path="d/f")
    before = snapshot(place.outside)
    files = box.context.files
    real = files.target("d/f")
    folder.rename(place.root / "moved")
    folder.symlink_to(place.outside)
    granted = files.granted()
    with pytest.raises(Exception, match="link"):
        granted.open(granted.find(str(real)))
    with pytest.raises(Exception, match="could not be written"):
        granted.write(granted.target(str(real)), b"x", "0" * 64)
    assert snapshot(place.outside) == before


async def test_a_full_disk_leaves_the_old_file(place: Place) -> None:
    path = place.root / "f"
    path.write_text("old")
    box = place.box()
    await use(box, "Read", file_path="f")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        found = await use(box, "Write", file_path="f", content="x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert found.is_error
    assert "old contents are intact" in found.text
    assert path.read_text() == "old"
    assert [p.name for p in place.root.iterdir()] == ["f"]


# --- Glob and List


@pytest.fixture
def tree(place: Place) -> Path:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", "node_modules/x/e.py", ".git/h"):
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (place.outside / "secret.py").write_text("x")
    (place.root / "link").symlink_to(place.outside)
    return place.root


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.{py,txt}", ["src/b.py", "src/d.txt", "src/deep/c.py"]),
        ("**/deep/*", ["src/deep/c.py"]),
        ("node_modules/**/*.py", ["node_modules/x/e.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("none*", []),
    ],
)
async def test_glob(place: Place, tree: Path, pattern: str, found: list[str]) -> None:
    given = await use(place.box(), "Glob", pattern=pattern)
    assert given.text.splitlines() == (found or ["No files match"])
    outside = await use(place.box(), "Glob", pattern=pattern, path=str(tree))
    assert outside.text == given.text


@pytest.mark.parametrize(
    "pattern",
    ["../*", "/etc/*", "~/*", "a/../../*", "{a,b}" * 9, "*" * 2_000, "a\0"],
)
async def test_glob_stays_below_its_folder(place: Place, tree: Path, pattern: str) -> None:
    assert (await use(place.box(), "Glob", pattern=pattern)).is_error


async def test_a_pattern_of_many_stars_is_quick(place: Place) -> None:
    (place.root / ("a" * 200)).write_text("")
    found = await use(place.box(), "Glob", pattern="*a" * 60 + "b")
    assert found.text == "No files match"


async def test_list(place: Place, tree: Path) -> None:
    found = await use(place.box(), "List")
    rows = [".git/", "a.py (1 bytes)", "link (link)", "node_modules/", "src/"]
    assert found.text.splitlines() == rows
    assert (await use(place.box(), "List", path="a.py")).is_error
    (tree / "evil\n\x1b[31m").write_text("")
    assert "\x1b" not in (await use(place.box(), "List")).text


async def test_a_working_folder_that_disappears(place: Place) -> None:
    box = place.box()
    place.root.rmdir()
    for name, value in {
        "Read": {"file_path": "a"},
        "Glob": {"pattern": "*"},
        "List": {},
        "Grep": {"pattern": "x"},
        "Bash": {"command": "pwd"},
        "Edit": {"file_path": "a", "old_string": "a", "new_string": "b"},
    }.items():
        found = await use(box, name, **value)
        assert found.is_error, name
        assert "Traceback" not in found.text
    assert not place.root.exists()


def test_a_file_that_was_put_has_its_bytes_and_then_its_name_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    done = run_with_error(lambda: put(path, b"new", digest(b"old")), sys.maxsize, None)
    assert path.read_bytes() == b"new"
    kept = [one for one in done.calls if one in ("os.write", "os.fsync", "os.rename")]
    assert kept == ["os.write", "os.fsync", "os.rename", "os.fsync"]


def test_what_an_editor_writes_while_a_file_is_put_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "a.txt", os.fsync
    path.write_bytes(b"old")

    def saved_meanwhile(fd: int) -> None:
        real(fd)
        path.write_bytes(b"an editor's")

    monkeypatch.setattr(os, "fsync", saved_meanwhile)
    with pytest.raises(StoreError):
        put(path, b"new", digest(b"old"))
    assert path.read_bytes() == b"an editor's"
