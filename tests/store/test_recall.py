"""The recall index on real files: kept up to date, shared by processes, never fatal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.recall import Query, QueryVector, Utterance
from reverie.session import SessionLibrary
from reverie.store import INDEX_NAME, MAX_INDEXED, Folder, Journal, RecallIndex, RefreshResult
from reverie.transcript import AssistantMessage, Entry, UserMessage, encode, text_block
from reverie.world import Notice
from tests.conftest import Scale

pytestmark = pytest.mark.spec("B2.index")

NOW = 1_770_000_000.0
SESSION = "00000000-0000-4000-8000-00000000000{}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "memory"
    made.mkdir()
    return made


@pytest.fixture
def index(tmp_path: Path) -> Iterator[RecallIndex]:
    with RecallIndex.open(tmp_path / INDEX_NAME) as opened:
        yield opened


def write(folder: Path, key: str, body: str, *, about: str = "", age: float = 100.0) -> None:
    path = folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {path.stem}\ndescription: {about}\ntype: project\n---\n\n" if about else ""
    path.write_text(head + body, encoding="utf-8")
    at = NOW - age
    os.utime(path, (at, at))


def files(index: RecallIndex, text: str, **more: object) -> list[str]:
    return [hit.file for hit in index.search(Query.of(text, NOW), **more)]  # type: ignore[arg-type]  # plain keywords


# Which files


def test_every_topic_file_is_found_and_nothing_else(index: RecallIndex, folder: Path) -> None:
    for key in ("a.md", "deep/er/b.md", "team/c.md", "sub/logs/d.md"):
        write(folder, key, "about zebras\n")
    for key in ("MEMORY.md", "team/memory.md", "logs/2026/01/2026-01-01.md", "e.txt", "f.md.bak"):
        write(folder, key, "about zebras\n")
    (folder / "link.md").symlink_to(folder / "a.md")
    (folder / "out").symlink_to("/")
    os.mkfifo(folder / "pipe.md")
    (folder / "g.md").mkdir()
    write(folder, "g.md/h.md", "about zebras\n")
    found = index.refresh(folder)
    assert found.seen == found.changed == 5
    assert set(files(index, "zebras")) == {
        "a.md",
        "deep/er/b.md",
        "team/c.md",
        "sub/logs/d.md",
        "g.md/h.md",
    }
    assert index.refresh(folder).changed == 0


def test_a_hit_says_what_it_is_and_why(index: RecallIndex, folder: Path) -> None:
    body = "# Deploying\n\nfirst\n\nstaging goes by make deploy\n"
    write(folder, "deploy.md", body, about="How staging is deployed")
    write(folder, "other.md", "nothing of interest\n", about="Something else")
    index.refresh(folder)
    (hit,) = index.search(Query.of("how do we deploy staging?", NOW))
    assert (hit.file, hit.kind, hit.type, hit.name) == ("deploy.md", "memory", "project", "deploy")
    assert hit.description == "How staging is deployed"
    assert hit.saved == NOW - 100
    assert hit.passage.startswith("staging goes by")
    lines = (folder / "deploy.md").read_text().splitlines()
    assert lines[hit.line - 1].startswith("staging goes by")
    assert {"path", "about", "body", "near"} <= {name for name, _ in hit.why}
    assert sum(part for _, part in hit.why) == pytest.approx(hit.score, abs=0.01)
    assert hit.clear


@pytest.mark.parametrize("above", ["", "\n", "\n\n", "  \n", " \t\n\n", "\r\n", "\ufeff"])
@pytest.mark.parametrize(
    "body", ["zebra\n", "one\n\nzebra\n", "Straße " * 40 + "\nzebra\n", "plain\n"]
)
def test_the_line_is_that_of_the_passage(
    index: RecallIndex, folder: Path, above: str, body: str
) -> None:
    head = f"---\nname: zebra\n---\n{above}" if above != "\ufeff" else "\ufeff---\nname: z\n---\n\n"
    (folder / "zebra.md").write_bytes((head + body).encode())
    index.refresh(folder)
    (hit,) = index.search(Query.of("zebra", NOW))
    lines = (folder / "zebra.md").read_text().splitlines()
    assert lines[hit.line - 1] == hit.passage.splitlines()[0]
    assert "zebra" in hit.passage or body == "plain\n"


def test_what_is_about_other_things_is_not_clear(index: RecallIndex, folder: Path) -> None:
    write(folder, "deploy.md", "make deploy\n", about="How staging is deployed")
    index.refresh(folder)
    for text in (
        "what shall I cook for dinner when the make is late",
        "deploy my grandmother's garden party invitations",
    ):
        assert not any(hit.clear for hit in index.search(Query.of(text, NOW))), text
    assert index.search(Query.of("quantum chromodynamics", NOW)) == []


def test_exclusion_and_number(index: RecallIndex, folder: Path) -> None:
    for n in range(8):
        write(folder, f"n{n}.md", "about zebras\n")
    index.refresh(folder)
    assert len(files(index, "zebras", k=3)) == 3
    assert files(index, "zebras", k=0) == []
    assert files(index, "zebras", exclude={f"n{n}.md" for n in range(7)}) == ["n7.md"]


# Keeping up


def test_frontmatter_counts_within_the_lines_that_a_setting_says(
    tmp_path: Path, folder: Path
) -> None:
    filler = "".join(f"k{n}: v\n" for n in range(8))
    (folder / "a.md").write_text(f"---\nname: x\n{filler}description: zebras\n---\n\nbody\n")
    os.utime(folder / "a.md", (NOW, NOW))
    for lines, about in ((30, "zebras"), (5, ""), (5, ""), (30, "zebras")):
        with RecallIndex.open(tmp_path / INDEX_NAME, header_lines=lines) as index:
            index.refresh(folder)
            (hit,) = index.search(Query.of("zebras", NOW))
            assert hit.description == about
            assert index.refresh(folder).changed == 0


def test_changes_are_seen_by_time_size_and_inode(index: RecallIndex, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    write(folder, "b.md", "about lions\n")
    index.refresh(folder)
    write(folder, "a.md", "about tigers\n", age=50)
    os.unlink(folder / "b.md")
    write(folder, "c.md", "about lions\n")
    assert index.refresh(folder) == RefreshResult(2, 2, 1)
    assert files(index, "zebras") == []
    assert files(index, "tigers") == ["a.md"]
    assert files(index, "lions") == ["c.md"]
    write(folder, "new.md", "about wolves\n", age=50)  # same time and size, another inode
    os.replace(folder / "new.md", folder / "a.md")
    index.refresh(folder)
    assert files(index, "wolves") == ["a.md"]


def test_a_file_written_just_now_is_read_again(index: RecallIndex, folder: Path) -> None:
    (folder / "a.md").write_text("about zebras")
    index.refresh(folder)
    mark = os.stat(folder / "a.md")
    (folder / "a.md").write_text("about wolves")
    os.utime(folder / "a.md", ns=(mark.st_atime_ns, mark.st_mtime_ns))  # within one tick
    index.refresh(folder)
    assert files(index, "wolves") == ["a.md"]


def test_a_told_path_is_all_that_is_looked_at(index: RecallIndex, folder: Path) -> None:
    for key in ("a.md", "b.md"):
        write(folder, key, "about zebras\n")
    assert index.refresh(folder, paths=["a.md", "MEMORY.md", "../x.md", "a\udc80.md"]).changed == 1
    assert files(index, "zebras") == ["a.md"]
    os.unlink(folder / "a.md")
    assert index.refresh(folder, paths=["a.md"]).removed == 1
    assert files(index, "zebras") == []


def test_a_folder_that_is_gone_leaves_nothing(index: RecallIndex, folder: Path) -> None:
    write(folder, "deep/a.md", "about zebras\n")
    index.refresh(folder)
    os.rename(folder, folder.with_name("elsewhere"))
    assert index.refresh(folder) == RefreshResult(0, 0, 1)
    assert files(index, "zebras") == []


def test_files_may_vanish_and_grow_while_they_are_read(
    index: RecallIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        write(folder, f"n{n}.md", f"about zebras {n}\n")
    whole = Folder.read
    seen: list[str] = []

    def read(
        self: Folder, key: str, limit: int | None = None, *, single_link: bool = False
    ) -> bytes:
        seen.append(key)
        if len(seen) == 3:
            for n in range(20):
                if f"n{n}.md" not in seen and n % 2:
                    os.unlink(folder / f"n{n}.md")
                else:
                    with open(folder / f"n{n}.md", "a") as file:
                        file.write("and wolves " * 10)
        return whole(self, key, limit, single_link=single_link)

    monkeypatch.setattr(Folder, "read", read)
    index.refresh(folder)
    monkeypatch.undo()
    index.refresh(folder)
    there = {path.name for path in folder.iterdir()}
    assert set(files(index, "zebras", k=50)) == there
    assert set(files(index, "wolves", k=50)) == there


def test_hostile_files_are_taken_as_they_are(index: RecallIndex, folder: Path) -> None:
    with open(folder / "huge.md", "wb") as file:
        file.write(b"about zebras\n" * 10)
        file.truncate(1 << 30)
    (folder / "latin.md").write_bytes("über zebras \xff\xfe café".encode("latin-1"))
    (folder / "wide.md").write_bytes("about zebras".encode("utf-16"))
    (folder / "zero.md").write_bytes(b"about\0zebras\0" * 100)
    (folder / "line.md").write_bytes(b"zebras " * 100_000)
    (folder / "front.md").write_bytes(b"---\nname: [&a *a\n---\nzebras")
    os.chmod(folder / "line.md", 0o600)
    (folder / os.fsdecode(b"not\xfftext.md")).write_text("about zebras")
    found = index.refresh(folder)
    assert found.whole
    names = {"huge.md", "latin.md", "wide.md", "zero.md", "line.md", "front.md"}
    assert set(files(index, "zebras")) == names
    (row,) = index._base.execute("SELECT max(length(body)) FROM file").fetchone()
    assert row <= MAX_INDEXED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the",
        "😀",
        '"',
        "' OR 1=1 --",
        "NEAR(a, b)",
        "name:x",
        "*",
        "a" * 100_000,
        "zebra " * 20_000,
    ],
)
def test_any_query_can_be_searched(index: RecallIndex, folder: Path, text: str) -> None:
    write(folder, "a.md", "about zebras\n")
    index.refresh(folder)
    found = files(index, text, kinds=("memory", "transcript"))
    assert found == (["a.md"] if "zebra" in text else [])


def test_a_date_finds_what_was_saved_then(index: RecallIndex, folder: Path) -> None:
    write(folder, "now.md", "about zebras\n", age=60)
    write(folder, "then.md", "about zebras\n", age=86_400)
    index.refresh(folder)
    assert files(index, "zebras yesterday")[0] == "then.md"
    assert files(index, "yesterday") == ["then.md"]


# The index file


def test_the_index_is_ours_alone(tmp_path: Path, index: RecallIndex, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    index.refresh(folder)
    for path in tmp_path.glob(f"{INDEX_NAME}*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("damage", ["text", "zeros", "half", "empty", "foreign", "version"])
def test_a_broken_index_is_made_anew(tmp_path: Path, folder: Path, damage: str) -> None:
    path = tmp_path / INDEX_NAME
    for n in range(300):
        write(folder, f"n{n}.md", f"about zebras {n} " * 20)
    with RecallIndex.open(path) as index:
        index.refresh(folder)
    size = path.stat().st_size
    if damage == "text":
        path.write_text("this is no database" * 100)
    elif damage == "zeros":
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(bytes(size - 8192))
    elif damage == "half":
        os.truncate(path, size // 2)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        base = sqlite3.connect(path)
        if damage == "version":
            base.execute("UPDATE about SET value = '0'")
        else:
            base.execute("DROP TABLE about")
        base.commit()
        base.close()
    said: list[Notice] = []
    with RecallIndex.open(path, say=said.append) as index:
        index.refresh(folder)
        index.search(Query.of("zebras", NOW))
        index.refresh(folder)
        assert len(files(index, "zebras", k=500)) == 300
    assert said or damage == "empty"
    with RecallIndex.open(path) as index:
        assert index.refresh(folder).changed == 0


def test_an_index_that_another_holds_is_done_without(tmp_path: Path, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    path = tmp_path / INDEX_NAME
    with RecallIndex.open(path) as index:
        index.refresh(folder)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    said: list[Notice] = []
    with RecallIndex.open(path, say=said.append) as index:
        index.refresh(folder)
        assert files(index, "zebras") == ["a.md"]
    assert said
    assert path.exists()
    other.close()
    with RecallIndex.open(path) as index:
        assert index.refresh(folder).changed == 0


def test_while_another_writes_a_search_goes_on(tmp_path: Path, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    path = tmp_path / INDEX_NAME
    with RecallIndex.open(path) as index:
        index.refresh(folder)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert files(index, "zebras") == ["a.md"]
        write(folder, "b.md", "about zebras\n")
        assert not index.refresh(folder).whole
        other.execute("ROLLBACK")
        assert index.refresh(folder).changed == 1
        other.close()


def test_a_place_that_cannot_be_written_is_done_without(tmp_path: Path, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / INDEX_NAME, folder, Path("/proc/none") / INDEX_NAME):
        with RecallIndex.open(path) as index:
            index.refresh(folder)
            assert files(index, "zebras") == ["a.md"]
    assert folder.is_dir()


def test_a_clean_close_leaves_the_index_alone(tmp_path: Path, folder: Path) -> None:
    kept = tmp_path / "kept"
    write(folder, "a.md", "about zebras\n")
    with RecallIndex.open(kept / INDEX_NAME) as index:
        index.refresh(folder)
        assert files(index, "zebras") == ["a.md"]
        index.refresh_transcripts(kept)
        index.search(Query.of("zebras", NOW), kinds=("memory", "transcript"))
        assert (kept / f"{INDEX_NAME}-wal").exists()
    assert os.listdir(kept) == [INDEX_NAME]


def killed(path: Path, folder: Path) -> None:
    index = RecallIndex.open(path)
    index.refresh(folder)
    index._base.execute("BEGIN IMMEDIATE")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_used_and_cleaned_up(tmp_path: Path, folder: Path) -> None:
    kept = tmp_path / "kept"
    write(folder, "a.md", "about zebras\n")
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=killed, args=(kept / INDEX_NAME, folder))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert set(os.listdir(kept)) == {INDEX_NAME, f"{INDEX_NAME}-wal", f"{INDEX_NAME}-shm"}
    said: list[Notice] = []
    with RecallIndex.open(kept / INDEX_NAME, say=said.append) as index:
        assert files(index, "zebras") == ["a.md"]
        assert index.refresh(folder).changed == 0
    assert said == []
    assert os.listdir(kept) == [INDEX_NAME]


def worker(path: Path, folder: Path, who: int, rounds: int) -> None:
    with RecallIndex.open(path) as index:
        for n in range(rounds):
            write(folder, f"w{who}/n{n % 7}.md", f"about zebras {who} {n}\n", age=float(n))
            index.refresh(folder)
            index.search(Query.of("zebras", NOW))


def test_processes_share_one_index(tmp_path: Path, folder: Path, scale: Scale) -> None:
    path = tmp_path / INDEX_NAME
    context = multiprocessing.get_context("spawn")
    rounds = scale.pick(8, 100)
    workers = [context.Process(target=worker, args=(path, folder, n, rounds)) for n in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert [one.exitcode for one in workers] == [0] * 4
    with RecallIndex.open(path) as index:
        index.refresh(folder)
        assert len(files(index, "zebras", k=100)) == 4 * min(rounds, 7)
        base = index._base
        for name in ("note_index", "turn_index"):
            base.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
        (texts,) = base.execute("SELECT texts FROM total WHERE kind = 'memory'").fetchone()
        assert texts == 4 * min(rounds, 7)


# Transcripts


def transcript(folder: Path, n: int, *said: str) -> str:
    session = SESSION.format(n)
    with Journal.open(Folder(folder), f"{session}.jsonl") as log:
        entries = [
            Entry(
                f"e{k}",
                "",
                NOW + k,
                AssistantMessage((text_block(text),))
                if k % 2
                else UserMessage((text_block(text),)),
            )
            for k, text in enumerate(said)
        ]
        log.append([encode(entry) for entry in entries])
    return session


def test_transcripts_are_found_on_request(tmp_path: Path, index: RecallIndex) -> None:
    kept = tmp_path / "project"
    first = transcript(kept, 1, "where is the staging server", "It stands in Oslo.", "thanks")
    second = transcript(kept, 2, "bake a cake", "With flour \ud800 and eggs.")
    assert index.search(Query.of("staging server", NOW), kinds=("transcript",)) == []
    assert index.refresh_transcripts(kept).changed == 2
    hits = index.search(Query.of("the staging server?", NOW), kinds=("memory", "transcript"))
    assert {hit.message for hit in hits[:2]} == {"e0", "e1"}
    assert {hit.session for hit in hits} == {first}
    assert hits[0].kind == "transcript"
    assert [hit.session for hit in index.sessions(Query.of("flour", NOW))] == [second]
    assert index.search(Query.of("flour", NOW), kinds=("transcript",), exclude={second}) == []
    transcript(kept, 2, "", "more about quinces")
    assert index.refresh_transcripts(kept).changed == 1
    assert [h.session for h in index.sessions(Query.of("quinces", NOW))] == [second]
    SessionLibrary(kept, kept).remove(second)
    assert index.refresh_transcripts(kept).removed == 1
    assert index.sessions(Query.of("quinces flour", NOW)) == []


def test_a_dialogue_is_found_by_speaker_and_time(index: RecallIndex) -> None:
    may, june = 1_683_460_800.0, 1_686_139_200.0  # 7 May and 7 June 2023
    index.put_session("D1", [Utterance("I bought a kayak.", "Ann", may, "D1:1")])
    index.put_session("D2", [Utterance("I bought a kayak.", "Bob", june, "D2:1")])
    index.put_session("D3", [Utterance("Hello there.", "Ann", june, "D3:1")])
    assert index.sessions(Query.of("Who bought a kayak in June 2023?", NOW))[0].session == "D2"
    assert index.sessions(Query.of("What did Ann buy?", NOW))[0].session == "D1"
    named = index.sessions(Query.of("What is Ann's zodiac sign?", NOW))
    assert [hit.session for hit in named] == ["D1", "D3"]
    assert {hit.score for hit in named} == {0.0}


def test_what_the_user_said_comes_before_replies_that_repeat_it(index: RecallIndex) -> None:
    """Replies go on for long about what the user said in few words, and are many."""
    topics = ("roses", "pans", "novels", "hinges", "maps", "lamps")
    for n, topic in enumerate(topics):
        said = [
            Utterance(
                f"My sister Ida gave me {topic} for my birthday. Ideas?", "user", NOW, f"u{n}"
            ),
            Utterance(
                f"What a birthday gift from your sister Ida! {topic} as a birthday gift: "
                + " ".join(f"A sister who gives {topic} will like idea {k}." for k in range(20)),
                "assistant",
                NOW,
                f"a{n}",
            ),
        ]
        index.put_session(f"S{n}", said)
    query = Query.of("What did my sister give me for my birthday: hinges?", NOW)
    hits = index.search(query, k=4, kinds=("transcript",))
    assert hits[0].message == "u3"
    assert "a3" in {hit.message for hit in hits}
    index.put_session("S3", [])
    left = index.search(query, k=20, kinds=("transcript",))
    assert {hit.message for hit in left} == {f"{who}{n}" for who in "ua" for n in (0, 1, 2, 4, 5)}


# Meaning


def test_meaning_finds_what_words_do_not(index: RecallIndex, folder: Path) -> None:
    for n, key in enumerate(("dog.md", "tax.md", "sea.md")):
        write(folder, key, f"text number {n}\n")
    index.refresh(folder)
    missing = index.without_vector("m")
    assert len(missing) == 3
    keys = {
        ident: hit.file
        for ident, _ in missing
        for hit in index.search(Query.of("text", NOW))
        if _named(index, ident) == hit.file
    }
    at = {"dog.md": [1.0, 0.0, 0.0], "tax.md": [0.0, 2.0, 0.0], "sea.md": [0.0, 0.0, 3.0]}
    assert index.put_vectors("m", [(ident, at[key]) for ident, key in keys.items()]) == 3
    assert index.put_vectors("m", [(999, [1.0]), (next(iter(keys)), [0.0]), (1, [])]) == 0
    query = Query.of("what is my hound called", NOW)
    assert index.search(query) == []
    assert files_meant(index, query, QueryVector("m", [0.9, 0.1, 0.0]))[0] == "dog.md"
    assert files_meant(index, query, QueryVector("other", [0.9, 0.1, 0.0])) == []
    assert files_meant(index, query, QueryVector("m", [1.0])) == []
    write(folder, "sea.md", "text number 2\n", age=20)  # another time, the same words
    assert index.refresh(folder).changed == 0
    assert index.without_vector("m") == []
    write(folder, "dog.md", "changed\n", age=10)
    index.refresh(folder)
    assert len(index.without_vector("m")) == 1


def _named(index: RecallIndex, ident: int) -> str:
    return index._base.execute("SELECT key FROM file WHERE id = ?", (ident,)).fetchone()[0]


def files_meant(index: RecallIndex, query: Query, meaning: QueryVector) -> list[str]:
    return [hit.file for hit in index.search(query, meaning=meaning) if hit.score > 1]


# What happens to files and to the index while it is open


def test_an_edit_that_keeps_size_and_time_is_seen(index: RecallIndex, folder: Path) -> None:
    write(folder, "a.md", "about zebras\n")
    index.refresh(folder)
    index._notes._base.execute("UPDATE file SET modified = ?", (int((NOW - 100) * 1e9),))
    kept = os.stat(folder / "a.md")
    index._notes._base.execute(
        "UPDATE file SET size = ?, inode = ?, changed = ?",
        (kept.st_size, kept.st_ino, kept.st_ctime_ns),
    )  # as it is known once it has settled
    while os.stat(folder / "a.md").st_ctime_ns == kept.st_ctime_ns:
        write(folder, "a.md", "about cobras\n")
    after = os.stat(folder / "a.md")
    assert (after.st_size, after.st_mtime_ns) == (kept.st_size, kept.st_mtime_ns)
    assert index.refresh(folder).changed == 1
    assert files(index, "cobras") == ["a.md"]
    assert files(index, "zebras") == []


def test_words_around_a_nul_byte_are_found(index: RecallIndex, folder: Path) -> None:
    (folder / "a.md").write_bytes(b"---\nname: a\0b\n---\nabout zebras\0 and cobras\n")
    assert index.refresh(folder).changed == 1
    for word in ("zebras", "cobras"):
        (hit,) = index.search(Query.of(word, NOW))
        assert (hit.file, hit.line) == ("a.md", 4)
        assert "cobras" in hit.passage
    ((_, text),) = index.without_vector("m")
    assert "cobras" in text
    assert index.refresh(folder).changed == 0


def test_an_index_deleted_while_it_is_open_is_made_anew(
    tmp_path: Path, index: RecallIndex, folder: Path
) -> None:
    write(folder, "a.md", "about zebras\n")
    index.refresh(folder)
    assert files(index, "zebras") == ["a.md"]
    for name in list(tmp_path.glob(f"{INDEX_NAME}*")):
        name.unlink()
    begun = index.begun
    assert files(index, "zebras") == []
    assert index.begun == begun + 1
    index.refresh(folder)
    assert files(index, "zebras") == ["a.md"]
    assert (tmp_path / INDEX_NAME).stat().st_mode & 0o777 == 0o600
    with RecallIndex.open(tmp_path / INDEX_NAME) as other:
        assert files(other, "zebras") == ["a.md"]


def test_a_message_is_looked_at_sentence_by_sentence(index: RecallIndex, folder: Path) -> None:
    write(folder, "deploy.md", "staging goes by make deploy\n", about="How staging is deployed")
    for n in range(40):
        write(folder, f"garden_{n}.md", f"bed {n} has tulips\n", about=f"Tulip bed {n}")
    index.refresh(folder)
    said = "how is staging deployed?"
    alone = index.about(said, NOW)[0]
    long = index.about(f"Well, that was a long lunch. {said} My train leaves soon.", NOW)[0]
    assert alone.file == long.file == "deploy.md"
    assert alone.clear
    assert long.evidence > 0.6 * alone.evidence
    (whole, *_) = index.search(
        Query.of(f"Well, that was a long lunch. {said} My train leaves", NOW)
    )
    assert whole.evidence < long.evidence


def test_a_compound_is_found_by_its_parts_and_finds_them(index: RecallIndex, folder: Path) -> None:
    write(folder, "a.md", "Die Datenbankverbindung wird nach einer Minute getrennt\n")
    write(folder, "b.md", "Der Zeitplan steht im Kalender und wird nicht geteilt\n")
    index.refresh(folder)
    assert files(index, "Datenbank") == ["a.md"]
    assert files(index, "Kalendereintrag") == ["b.md"]
    assert files(index, "Donau") == []
