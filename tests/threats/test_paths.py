"""Paths and names that try to leave their folder: rows 1 to 15 and 70 of the threats."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reverie.errors import NotFound, PathRefused, ReverieError, StoreError
from reverie.store import Folder, Journal, beneath, check_key
from tests.conftest import Scale
from tests.faults import CALLS, Plan, open_files, shim

pytestmark = pytest.mark.spec("1.store")

SECRET = b"what lies outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_bytes(SECRET)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "memory") as folder:
        yield folder


def untouched(outside: Path) -> bool:
    found = {path.name: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    return found == {"secret.md": SECRET} and len(list(outside.iterdir())) == 1


def every_door(folder: Folder) -> list[Callable[[str], Any]]:
    return [
        folder.read,
        folder.stat,
        folder.exists,
        folder.digest,
        folder.remove,
        folder.path,
        folder.sub,
        folder.list,
        folder.flush,
        folder.open_read,
        folder.open_append,
        lambda key: folder.write(key, b"x"),
        lambda key: folder.append_line(key, b"x"),
        lambda key: Journal.open(folder, key),
        lambda key: Journal.open(folder, key, write=False),
    ]


def refused_unseen(folder: Folder, key: str) -> None:
    """The key is refused at every door, before any call that could reach a file."""
    for door in every_door(folder):
        if key == "" and door == folder.list:
            continue
        with shim(Plan(0, calls=CALLS)) as seen, pytest.raises(PathRefused) as caught:
            door(key)
        assert seen.calls == []
        assert str(caught.value).isprintable()
        assert caught.value.do


ROW_1 = [
    "../x", "a/../../x", "a/..", "..", "/x", "//x", "/", "C:x", "C:/x", "c:", "//server/share/x",
    "~", "~/x", "~root/x", "", ".", "./x", "a/./b", "a/", "a//b", "x/",
]  # fmt: skip
ROW_2 = [
    "%2e%2e%2f", "%2e%2e/x", "%252e%252e%252fx", "..%5cx", "..\\x", "a\\b", "\\x",
    "\\\\server\\share", "%00", "a%2fb", "100%",
]  # fmt: skip
ROW_3 = ["．．／x", "．．/x", "‥/x", "․․/x", "a／b", "ｘ.md", "ﬁle.md", "²", "①.md"]
ROW_4 = [
    "a∕b", "a⁄b", "a⧸b", "MEMORY\u200b.md", "MEMORY\u200d.md", "\ufeffMEMORY.md", "a\u202emd.x",
    "a\u2066b", "a\x1b[31m", "a\tb", "a\nb", "a\rb", "a\x7f", "a\x85", "a\u00ad", "a\u2028b",
    "a\ufe0f", "a\u034f", "a\u115f", "a\u3164", "a\U000e0041", "a\U000e0100", "a\ue000", "a\ud800",
    "a\uffff", "\u0301a", "a*", "a?", 'a"', "a<b", "a>b", "a|b", "a\u00a0b", "a\u3000b", "😀.md",
]  # fmt: skip
ROW_6 = [
    "CON", "con", "NUL.md", "nul", "aux.tar.gz", "PRN", "COM1", "com9.txt", "LPT1", "lpt0", "d/CON",
    "CON/x", "NUL .md", "a.md.", "a.md ", "a.", "...", ". .", "d./x", "d /x", " a.md",
    "a.md:stream", "a:b", "COM¹",
]  # fmt: skip
ROW_7 = ["\0", "a\0", "a\0.md", "d\0/x", "a/\0b"]
ROW_8 = ["n" * 256, "é" * 128, "/".join("abcdefghi"), "/".join(["d" * 200] * 30), "x" * 10**6]


@pytest.mark.parametrize("key", ROW_1)
def test_row_01_traversal_and_absolute_keys_are_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize("key", ROW_2)
def test_row_02_encoded_traversal_and_backslashes_are_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize("key", ROW_3)
def test_row_03_keys_that_nfkc_turns_into_others_are_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize("key", ROW_4, ids=ascii)
def test_row_04_characters_outside_the_class_are_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("cafe\u0301.md", "caf\u00e9.md"),
        ("K.md", "\u212a.md"),
        ("k.md", "\u212a.md"),
        ("A.md", "a.md"),
        ("straße.md", "STRASSE.md"),
        ("Σ.md", "ς.md"),
        ("team/x.md", "Team/x.md"),
        ("team/x.md", "TEAM"),
    ],
    ids=ascii,
)
def test_row_05_a_second_spelling_is_refused_naming_the_first(
    folder: Folder, first: str, second: str
) -> None:
    folder.write(first, b"one")
    for door in (
        lambda key: folder.write(key, b"two"),
        folder.open_append,
        lambda key: folder.append_line(key, b"two"),
        lambda key: Journal.open(folder, key),
    ):
        with pytest.raises(PathRefused) as caught:
            door(second)
        assert first.partition("/")[0] in caught.value.what
    assert folder.list() == (first,)
    folder.write(first, b"again")
    assert folder.read(first) == b"again"


def test_row_05_two_threads_cannot_bring_in_both_spellings(folder: Folder, scale: Scale) -> None:
    for number in range(scale.pick(50, 1_000)):
        refused: list[str] = []
        start = threading.Barrier(2)

        def bring(key: str, start: threading.Barrier = start, refused: list[str] = refused) -> None:
            start.wait()
            try:
                folder.write(key, key.encode(), durable=False)
            except PathRefused:
                refused.append(key)

        pair = [f"Name{number}.md", f"name{number}.md"]
        threads = [threading.Thread(target=bring, args=(key,)) for key in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1
        (kept,) = set(pair) - set(refused)
        assert folder.read(kept) == kept.encode()
        assert not folder.exists(refused[0])


@pytest.mark.parametrize("key", ROW_6)
def test_row_06_names_that_windows_cannot_have_are_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize("key", ROW_7, ids=ascii)
def test_row_07_a_nul_byte_is_refused(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)


@pytest.mark.parametrize("key", ROW_8, ids=len)
def test_row_08_sizes_are_limited_and_the_limit_is_named(folder: Folder, key: str) -> None:
    refused_unseen(folder, key)
    with pytest.raises(PathRefused, match=r"255|4096|8") as caught:
        check_key(key)
    assert len(str(caught.value)) < 1_000


def test_row_08_many_keys_in_one_folder_are_listed(folder: Folder, scale: Scale) -> None:
    count = scale.pick(2_000, 100_000)
    for number in range(count):
        (folder.root / f"k{number}.md").touch()
    assert len(folder.list()) == count
    folder.write("one-more.md", b"x")
    assert len(folder.list()) == count + 1


def no_way_through(folder: Folder, key: str, outside: Path) -> None:
    """No door reads, writes, lists or removes what lies behind the key."""
    before = open_files()
    listed = folder.survey()
    assert key not in listed.keys
    for door in every_door(folder):
        if door in (folder.path, folder.remove, folder.exists, folder.flush):
            continue
        with pytest.raises((PathRefused, NotFound)):
            door(key)
    assert not folder.exists(key)
    assert untouched(outside)
    assert open_files() == before


def test_row_09_symlink_inside_is_not_followed(folder: Folder, outside: Path) -> None:
    for name, target in (
        ("absolute.md", outside / "secret.md"),
        ("relative.md", Path("../outside/secret.md")),
        ("inner.md", folder.root / "mine.md"),
        ("folder.md", outside),
    ):
        (folder.root / name).symlink_to(target)
    folder.write("mine.md", b"mine")
    for name in ("absolute.md", "relative.md", "folder.md"):
        no_way_through(folder, name, outside)
    with pytest.raises(PathRefused):
        folder.read("inner.md")
    with pytest.raises(PathRefused):
        folder.write("inner.md", b"x")
    assert folder.read("mine.md") == b"mine"
    assert {one.key for one in folder.survey().refused} == {
        "absolute.md", "relative.md", "inner.md", "folder.md",
    }  # fmt: skip
    folder.remove("absolute.md")
    assert untouched(outside)


def test_row_10_symlinked_parents_dangling_links_and_loops(folder: Folder, outside: Path) -> None:
    (folder.root / "linked").symlink_to(outside, target_is_directory=True)
    (folder.root / "up").symlink_to("..", target_is_directory=True)
    (folder.root / "dangling").symlink_to("nowhere")
    (folder.root / "loop").symlink_to("loop")
    (folder.root / "real").mkdir()
    (folder.root / "real" / "linked").symlink_to(outside, target_is_directory=True)
    for key in (
        "linked/secret.md", "linked/new.md", "linked", "up/outside/secret.md", "dangling",
        "dangling/x.md", "loop", "loop/x.md", "real/linked/secret.md", "real/linked/new.md",
    ):  # fmt: skip
        no_way_through(folder, key, outside)
    with pytest.raises(PathRefused):
        folder.remove("linked/secret.md")
    assert untouched(outside)
    assert not (folder.root / "nowhere").exists()
    assert folder.list() == ()


def test_row_10_the_root_itself_may_be_a_link_that_its_owner_made(
    tmp_path: Path, folder: Folder
) -> None:
    (tmp_path / "home").symlink_to(folder.root)
    with Folder(tmp_path / "home") as linked:
        linked.write("a.md", b"x")
    assert folder.read("a.md") == b"x"


def exchange() -> Callable[[Path, Path], None]:
    """Swap two names in one step, so that neither is ever missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        pytest.skip("needs renameat2: only Linux swaps two names at once")

    def swap(one: Path, other: Path) -> None:
        if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
            raise OSError(ctypes.get_errno(), "renameat2")

    return swap


def test_row_11_a_folder_swapped_for_a_link_at_any_moment(
    folder: Folder, outside: Path, scale: Scale
) -> None:
    swap = exchange()
    (folder.root / "d").mkdir()
    (folder.root / "d" / "secret.md").write_bytes(b"inside")
    (folder.root / "link").symlink_to(outside, target_is_directory=True)
    child = os.fork()
    if child == 0:
        try:
            while os.getppid() != 1:
                swap(folder.root / "d", folder.root / "link")
        finally:
            os._exit(1)
    refused = passed = 0
    attempts = scale.pick(5_000, 100_000)
    doors: list[Callable[[], Any]] = [
        lambda: folder.read("d/secret.md"),
        lambda: folder.write("d/new.md", b"new", durable=False),
        lambda: folder.append_line("d/log", b"line"),
        lambda: folder.list("d"),
        lambda: folder.remove("d/new.md", durable=False),
    ]
    try:
        for number in range(attempts):
            try:
                got = doors[number % len(doors)]()
            except NotFound:
                continue
            except PathRefused:
                refused += 1
                continue
            assert got != SECRET
            passed += 1
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert untouched(outside)
    print(f"{attempts} attempts: {passed} inside, {refused} refused, 0 outside")
    assert refused
    assert passed


def test_row_11_a_file_swapped_for_a_link_at_any_moment(
    folder: Folder, outside: Path, scale: Scale
) -> None:
    swap = exchange()
    (folder.root / "f.md").write_bytes(b"inside")
    (folder.root / "link").symlink_to(outside / "secret.md")
    done = threading.Event()

    def keep_swapping() -> None:
        while not done.is_set():
            swap(folder.root / "f.md", folder.root / "link")

    thread = threading.Thread(target=keep_swapping)
    thread.start()
    try:
        for number in range(scale.pick(2_000, 100_000)):
            try:
                if number % 2:
                    folder.append_line("f.md", b"x")
                else:
                    assert folder.read("f.md") != SECRET
            except PathRefused:
                pass
    finally:
        done.set()
        thread.join()
    assert untouched(outside)


def test_row_12_a_hard_link_is_not_pushed_nor_written_through(
    folder: Folder, outside: Path
) -> None:
    os.link(outside / "secret.md", folder.root / "hard.md")
    with pytest.raises(PathRefused, match="second name"):
        folder.read("hard.md", single_link=True)
    with pytest.raises(PathRefused, match="second name"):
        folder.open_append("hard.md")
    with pytest.raises(PathRefused, match="second name"):
        folder.append_line("hard.md", b"x")
    with pytest.raises(PathRefused, match="second name"):
        Journal.open(folder, "hard.md")
    assert folder.stat("hard.md").links == 2
    folder.write("hard.md", b"mine now")
    assert untouched(outside)
    assert folder.read("hard.md", single_link=True) == b"mine now"


def test_row_13_a_mount_point_is_refused(folder: Folder, outside: Path) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root: it mounts a file system")
    libc = ctypes.CDLL(None, use_errno=True)
    (folder.root / "mounted").mkdir()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # In a mount namespace of its own, so that nothing is left behind.
            private = libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None)
            at = os.fsencode(folder.root / "mounted")
            if private or libc.mount(b"tmpfs", at, b"tmpfs", 0, None):
                code = 77
            else:
                (folder.root / "mounted" / "x.md").write_bytes(SECRET)
                code = 0 if mount_is_refused(folder.root) else 2
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        pytest.skip("needs mounts: this kernel lets us make none")
    assert code == 0


def mount_is_refused(root: Path) -> bool:
    with Folder(root) as folder:
        for attempt in (
            lambda: folder.read("mounted/x.md"),
            lambda: folder.write("mounted/y.md", b"x"),
            lambda: folder.list("mounted"),
            lambda: folder.sub("mounted"),
        ):
            try:
                attempt()
            except PathRefused as refused:
                if "mounted" not in refused.what:
                    return False
            else:
                return False
        return folder.list() == () and [one.key for one in folder.survey().refused] == ["mounted"]


def elsewhere(monkeypatch: pytest.MonkeyPatch, inode: int) -> None:
    """Let one inode look as if it lay on another device."""
    real = os.fstat

    def fstat(fd: int) -> Any:
        info = real(fd)
        if info.st_ino != inode:
            return info
        fields = {name: getattr(info, name) for name in dir(info) if name.startswith("st_")}
        return SimpleNamespace(**{**fields, "st_dev": info.st_dev + 1})

    monkeypatch.setattr(os, "fstat", fstat)


@pytest.mark.parametrize("key", ["d", "d/x.md"])
def test_row_13_another_device_is_refused_where_mounts_have_no_number(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    folder.write("d/x.md", b"x")
    elsewhere(monkeypatch, (folder.root / key).stat().st_ino)
    monkeypatch.setattr("builtins.open", _no_proc)
    with pytest.raises(PathRefused, match="another file system"):
        folder.read("d/x.md")
    with pytest.raises(PathRefused, match="another file system"):
        folder.open_append("d/x.md")
    assert [one.key for one in folder.survey().refused] == (["d"] if key == "d" else [])


@pytest.mark.skipif(sys.platform != "linux", reason="needs linux: mount numbers in /proc")
def test_row_13_another_device_within_one_mount_is_ours(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("d/x.md", b"x")
    elsewhere(monkeypatch, (folder.root / "d").stat().st_ino)
    assert folder.read("d/x.md") == b"x"


def _no_proc(*_: object, **__: object) -> None:
    raise FileNotFoundError(2, "no /proc here")


def test_row_14_special_files_are_skipped_and_never_hang(folder: Folder, outside: Path) -> None:
    os.mkfifo(folder.root / "pipe.md")
    (folder.root / "folder.md").mkdir()
    kinds = ["pipe.md", "folder.md"]
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{short}/s")
        os.rename(f"{short}/s", folder.root / "socket.md")
        kinds.append("socket.md")
    if os.geteuid() == 0:
        try:
            os.mknod(folder.root / "device.md", stat.S_IFCHR | 0o600, os.makedev(1, 5))
            kinds.append("device.md")
        except OSError:
            pass
    for key in kinds:
        for door in (
            folder.read,
            folder.digest,
            folder.stat,
            folder.open_append,
            lambda key: folder.write(key, b"x"),
            lambda key: folder.append_line(key, b"x"),
            lambda key: Journal.open(folder, key),
        ):
            with pytest.raises(PathRefused):
                door(key)
        assert not folder.exists(key)
    assert folder.list() == ()
    assert {one.key for one in folder.survey().refused} == set(kinds) - {"folder.md"}


def test_row_15_a_neighbour_with_the_same_beginning_is_not_beneath(tmp_path: Path) -> None:
    """The shape of CVE-2025-54794."""
    root = tmp_path / "memory"
    for path in (
        tmp_path / "memory-evil" / "x.md",
        tmp_path / "memory-evil",
        tmp_path / "memor",
        root / ".." / "memory-evil" / "x.md",
        root / ".." / "memory" / "x.md",
        tmp_path,
    ):
        assert not beneath(root, path)
    assert beneath(root, root)
    assert beneath(root, root / "x.md")
    assert beneath(Path("/"), root)


def test_row_70_files_are_private_and_temporary_names_random(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shape of CVE-2026-46406."""
    opened: list[tuple[str, int, int]] = []
    real = os.open

    def watch(path: Any, flags: int, mode: int = 0o777, **kwargs: Any) -> int:
        if flags & os.O_CREAT:
            opened.append((str(path), flags, mode))
        return real(path, flags, mode, **kwargs)

    monkeypatch.setattr(os, "open", watch)
    old = os.umask(0)
    try:
        for _ in range(20):
            folder.write("d/a.md", b"x", durable=False)
        folder.append_line("d/log", b"x")
        Journal.open(folder, "j.jsonl").close()
    finally:
        os.umask(old)
    temporary = [(path, flags) for path, flags, _ in opened if path.endswith(".tmp")]
    assert len({path for path, _ in temporary}) == 20
    assert all(flags & os.O_EXCL and flags & os.O_NOFOLLOW for _, flags in temporary)
    assert {mode for _, _, mode in opened} == {0o600}
    for path in [folder.root, *folder.root.rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_row_70_a_planted_temporary_file_is_not_used(
    folder: Folder, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    planted = folder.root / f".reverie-{os.getpid()}-{'0' * 16}.tmp"
    planted.symlink_to(outside / "secret.md")
    with pytest.raises(StoreError):
        folder.write("a.md", b"x")
    assert untouched(outside)
    assert not folder.exists("a.md")


def test_a_hostile_name_in_the_folder_stops_nothing(folder: Folder) -> None:
    folder.write("good.md", b"x")
    for name in (b"\xff\xfe.md", b"a\nb.md", b"CON", b"a:b", b"x\x1b[2J.md", b"a\\b"):
        (folder.root / os.fsdecode(name)).write_bytes(b"x")
    survey = folder.survey()
    assert survey.keys == ("good.md",)
    assert len(survey.refused) == 6
    assert all(one.key.isprintable() and one.reason for one in survey.refused)
    try:
        folder.read("CON")
    except ReverieError as error:
        assert "Windows" in str(error)  # noqa: PT017
