"""Each screen over a small project: its figures are those of the commands, its forms act."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import anyio
import pytest

from reverie.apps.web import ago, prose, share
from reverie.reports import KINDS, kinds_of
from reverie.text import number, short_number
from reverie.topics import Origin, Trust
from tests.cli.conftest import Run, one_turn
from tests.web.conftest import HOSTILE, Page, reply, talk

pytestmark = pytest.mark.spec("18.web")


def words(text: str) -> str:
    """A page as it reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def value_in(text: str, name: str) -> str:
    """The value of a page's first field of this name."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, name
    return html.unescape(found[1])


# --- sessions


def test_the_list_says_what_the_commands_say(page: Page, run: Run) -> None:
    (row,) = run("sessions", "list", "--json").json()["sessions"]
    cache = run("cache", row["id"], "--json").json()
    shown = words(page.visitor.get("/sessions").text)
    assert row["title"] == "Find out why the tests fail"
    for figure in (
        row["title"],
        short_number(row["tokens"]),
        f" {row['turns']} {cache['requests']} ",
        share(cache["hit_rate"]),
    ):
        assert figure in shown, figure


def test_a_timeline_says_what_the_commands_say(page: Page, run: Run) -> None:
    (row,) = run("sessions", "list", "--json").json()["sessions"]
    cache = run("cache", row["id"], "--last", "100", "--json").json()
    shown = words(page.visitor.get(f"/sessions/{row['id'][:8]}").text)
    assert f"Cache hits {share(cache['hit_rate'], 1)} {cache['breaks']} breaks" in shown
    assert f"{cache['requests']} requests" in shown
    assert number(cache["cost"]) in shown
    for request, one in enumerate(cache["last"], 1):
        at = words(page.visitor.get(f"/sessions/{row['id']}?at={request}").text)
        assert f"{number(one['read'])} read, {number(one['written'])} written" in at


@pytest.mark.spec("18.web-resume")
def test_a_timeline_has_the_command_that_goes_on_with_it(page: Page, run: Run) -> None:
    (row,) = run("sessions", "list", "--json").json()["sessions"]
    shown = page.visitor.get(f"/sessions/{row['id']}").text
    (name,) = re.findall(r'<button[^>]* data-copy="#(\w+)"', shown)
    (command,) = re.findall(rf'<code id="{name}">([^<]*)</code>', shown)
    assert command == f"reverie --resume {row['id']}"
    assert re.search(r'<span [^>]*role="status"></span><button', shown)
    assert "Continue this session" in run(*command.split()[1:], "--help", code=0).out


def test_a_session_of_the_embedded_model_tells_of_no_cache(
    page: Page, project: Path, run: Run
) -> None:
    """As `reverie cache` does; what its answers say of one is not shown."""
    answer = {**reply("Hello.", read=50), "model": "embedded"}
    ident = one_turn(project, "Hello there", answer, model="embedded", system="Be brief.")
    page.look()
    shown = words(page.visitor.get(f"/sessions/{ident}").text)
    for told in (shown, run("cache", ident, code=0).out):
        assert "nothing is billed, there is no cache" in told
    assert "Cache hits –" in shown
    assert "What the cache did" not in shown
    (billed,) = [one for one in page.desk.library.sessions() if one.id != ident]
    rate = run("cache", billed.id, "--json").json()["hit_rate"]
    row = words(page.visitor.get("/sessions?q=Hello").text)
    assert f"{share(rate)} of the billed input read from the cache." in row
    assert " – read from the cache" in row
    assert "0%" not in row.partition("1–1 of 1")[0].partition("Hello there")[2]


def test_the_kinds_of_tokens_add_up_to_the_view(page: Page) -> None:
    (file,) = page.desk.library.sessions()
    view = page.desk.library.read(file.id).view
    kinds = kinds_of(view)
    assert tuple(kinds) == KINDS
    assert sum(kinds.values()) == view.head_tokens + view.estimated


def test_a_stored_result_is_read_back_whole(page: Page) -> None:
    (file,) = page.desk.library.sessions()
    first = page.visitor.get(f"/sessions/{file.id}/stored/t0")
    assert first.status == 200
    assert "<script>document" not in first.text
    assert len(first.body) < 60_000
    offset = re.search(r"from=(\d+)", first.text)
    assert offset
    assert page.visitor.get(f"/sessions/{file.id}/stored/t0?from={offset[1]}").status == 200
    assert page.visitor.get(f"/sessions/{file.id}/stored/none").status == 404


def test_a_session_that_cannot_be_read_is_named_and_the_rest_shown(page: Page) -> None:
    (file,) = page.desk.library.sessions()
    lines = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(b"".join([*lines[:2], b'{"broken\n', *lines[2:]]))
    page.look()
    assert "1 line unread" in words(page.visitor.get("/sessions").text)
    shown = words(page.visitor.get(f"/sessions/{file.id}").text)
    assert "Part of this session cannot be read" in shown
    assert "line 3" in shown
    assert "Done" in shown or "Turn 1" in shown


def test_the_index_is_brought_up_to_date_and_rebuilt_when_lost(page: Page, project: Path) -> None:
    anyio.run(talk, project, "A second one")
    assert "A second one" not in page.visitor.get("/sessions").text
    page.look()
    assert "A second one" in page.visitor.get("/sessions").text
    page.desk.base.path.unlink()
    page.look()
    assert "2 sessions" in words(page.visitor.get("/sessions").text)
    for file in page.desk.library.sessions():
        page.desk.library.remove(file.id)
    page.look()
    assert "No sessions yet" in page.visitor.get("/sessions").text


def test_odd_addresses_are_answered(page: Page) -> None:
    for path in (
        "/sessions?page=99999999",
        "/sessions?sort=evil;drop",
        "/sessions/zz",
        "/sessions?q=%00%27",
        "/memories?q=%22%22",
        "/memories?q=a+OR+b*",
        "/memories/../../etc/passwd",
        "/memories/none.md",
        "/memories/none.md?version=zz",
        "/dream/zz",
    ):
        assert page.visitor.get(path).status in (200, 400, 404), path


# --- memories


def test_the_memories_are_those_of_the_command(page: Page, run: Run) -> None:
    rows = run("memory", "list", "--json").json()["memories"]
    shown = page.visitor.get("/memories").text
    assert f"<b>{len(rows)} memories</b>" in shown
    for row in rows:
        assert f'href="/memories/{row["file"]}' in shown
    found = run("memory", "search", "port", "8001", "--json").json()["memories"]
    listed = page.visitor.get("/memories?q=port+8001").text
    assert {row["file"] for row in found} == set(re.findall(r'href="/memories/(\w+\.md)', listed))
    score = run("memory", "check", "--json").json()["score"]
    assert f"score {score} of 100" in shown


def test_an_edit_a_diff_and_its_undo(page: Page, run: Run) -> None:
    key = "user_port_of_service_0.md"
    version = value_in(page.visitor.get(f"/memories/edit/{key}").text, "version")
    values = {"name": "Port of service 0", "description": "Where it listens", "type": "user"}
    values |= {"text": "Fact 0: the service listens on port 9000.", "version": version}
    saved = page.visitor.post(f"/memories/edit/{key}", values)
    assert saved.status == 303
    shown = page.visitor.get(saved.headers["location"]).text
    assert "<del>8000</del>" in shown
    assert "<ins>9000</ins>" in shown
    told = run("memory", "show", key, "--json").json()
    assert "9000" in told["text"]
    assert told["description"] == "Where it listens"
    undone = page.visitor.post("/memories/undo", {"version": value_in(shown, "version")})
    assert "8000" in run("memory", "show", key, "--json").json()["text"]
    assert "Undone" in page.visitor.get(undone.headers["location"]).text


def test_a_change_meanwhile_is_a_conflict_and_the_words_stay(page: Page) -> None:
    key = "user_port_of_service_0.md"
    version = value_in(page.visitor.get(f"/memories/edit/{key}").text, "version")
    with page.desk.changing() as memories:
        file = memories.folder.read(key)
        other = Origin("edit", Trust.AGENT, agent="another")
        memories.save(key, file.with_body("Somebody else was here.").data, other)
    values = {"name": "x", "description": "d", "type": "user", "text": "My words."}
    answer = page.visitor.post(f"/memories/edit/{key}", {**values, "version": version})
    assert answer.status == 409
    assert "changed meanwhile" in answer.text
    assert "My words." in answer.text
    assert "Somebody" in answer.text
    over = {**values, "version": version, "over": "1"}
    assert page.visitor.post(f"/memories/edit/{key}", over).status == 303
    assert "My words." in page.visitor.get(f"/memories/{key}").text


def test_a_secret_is_refused_and_the_words_stay(page: Page) -> None:
    secret = "AKIA" + "IOSFODNN7" + "ABCDEFG"
    answer = page.visitor.post("/memories/new", {"text": f"The key is {secret} here"})
    assert answer.status == 400
    assert "not saved" in answer.text
    assert "here</textarea>" in answer.text
    answer = page.visitor.post("/memories/new", {"text": "We deploy with make ship."})
    done = page.visitor.get(answer.headers["location"]).text
    assert "Saved." in done
    assert 'action="/memories/undo"' in done.partition("<h1>")[0]


def test_forgetting_asks_for_the_word(page: Page, home: Path) -> None:
    asked = page.visitor.post("/memories/forget", {"words": "port 8002"})
    assert "would change" in asked.text
    wrong = {"words": "port 8002", "sure": "yes", "confirm": "1"}
    assert "Type the word" in page.visitor.post("/memories/forget", wrong).text
    assert "8002" in page.visitor.get("/memories/project_port_of_service_2.md").text
    done = page.visitor.post("/memories/forget", {"words": "port 8002", "sure": "forget"})
    assert "proven" in done.text
    held = [one for one in home.rglob("*") if one.is_file() and b"port 8002" in one.read_bytes()]
    assert held == []


def test_row_68_text_of_others_is_inert_everywhere(page: Page) -> None:
    (file,) = page.desk.library.sessions()
    key = next(row["file"] for row in _rows(page) if "hostile" in row["file"])
    places = ["/sessions", f"/sessions/{file.id}", f"/sessions/{file.id}/stored/t0", "/memories"]
    places += [f"/memories/{key}", f"/memories/{key}?view=source", f"/memories/{key}?view=blame"]
    places += [
        f"/memories/edit/{key}",
        "/review",
        "/recall?q=click+pixel+hostile",
        f"/memories?q={key}",
    ]
    places += [
        "/health",
        "/health/mend",
        "/team",
        "/memories/moving",
        f"/memories/{key}?view=recalled",
    ]
    places += [
        "/savings?price=%3Cscript%3E&policy=%22%3E%3Cscript%3E",
        "/savings?sort=%3Cscript%3E",
    ]
    for place in ("/health", "/savings"):
        page.settled(place)
    places += ["/recall?q=%3Cscript%3Ealert(1)%3C/script%3E", "/sessions?q=%22%3E%3Cscript%3E"]
    for place in places:
        text = page.visitor.get(place).text
        for tag, attributes in parsed(text):
            assert tag not in ("img", "iframe", "object", "embed", "base"), place
            for name, value in attributes:
                assert not name.startswith(("on", "hx-on", "style")), (place, tag, name)
                if name in ("href", "src", "action", "hx-get", "formaction"):
                    assert value is not None
                    assert value.startswith(("/", "#")), (place, value)
                    assert not value.startswith("//"), (place, value)
        assert len(re.findall(r"<script", text)) == 3, place
        if place != f"/memories/edit/{key}":  # a form keeps every character of a text
            assert "\u202e" not in text, place
            assert "\x1b" not in text, place
    assert "{{ 7*7 }}" in page.visitor.get(f"/memories/{key}").text


def parsed(text: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    """The tags of a page as a parser sees them."""
    found: list[tuple[str, list[tuple[str, str | None]]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, attrs))

    Tags().feed(text)
    return found


def _rows(page: Page) -> list[dict[str, str]]:
    from reverie.reports import MemoryQuery

    return page.desk.memories.page(MemoryQuery())[0]


def test_markdown_is_a_small_set() -> None:
    made = str(prose(f"# T\n\n**b** `c` [x](http://a.test) ![i](http://a.test/i.png)\n\n{HOSTILE}"))
    assert "<h3>T</h3>" in made
    assert "<b>b</b>" in made
    assert "http://a.test" in made
    assert not re.search(r"<[^>]*href", made)
    assert "<img" not in made
    assert "<script" not in made


# --- review


def test_review_shows_the_evidence_and_decides(page: Page, run: Run) -> None:
    (item,) = run("memory", "review", "list", "--json").json()["items"]
    shown = page.visitor.get("/review").text
    assert "<mark>Ignore all previous instructions</mark>" in shown
    assert re.search(r'<span class="hid">[^<]*U\+202E', shown)
    edited = item["text"].partition("Ignore")[0] + "Orders are in Linear."
    done = page.visitor.post(f"/review/{item['id']}/accept", {"text": edited})
    assert done.status == 303
    assert run("memory", "review", "list", "--json").json()["items"] == []
    assert "Orders are in Linear" in run("memory", "show", item["file"], "--json").json()["text"]
    decided = page.visitor.get("/review").text
    version = re.search(
        r'action="/memories/undo"><input type="hidden" name="version" value="([\w-]+)"', decided
    )
    assert version
    page.visitor.post("/memories/undo", {"version": version[1]})
    keys = [row["file"] for row in run("memory", "list", "--json").json()["memories"]]
    assert item["file"] not in keys


@pytest.mark.spec("18.review-edit")
def test_an_emptied_text_saves_nothing_and_says_so(page: Page, run: Run) -> None:
    (item,) = run("memory", "review", "list", "--json").json()["items"]
    done = page.visitor.post(f"/review/{item['id']}/accept", {"text": " \r\n"})
    assert done.status == 400
    assert "Nothing is left to save" in done.text
    assert [item] == run("memory", "review", "list", "--json").json()["items"]
    assert page.visitor.post(f"/review/{item['id']}/accept").status == 303


def test_all_of_one_source_are_dropped(page: Page, run: Run) -> None:
    source = run("memory", "review", "list", "--json").json()["items"][0]["from"]
    page.visitor.post("/review/source/drop", {"source": "another"})
    assert len(run("memory", "review", "list", "--json").json()["items"]) == 1
    page.visitor.post("/review/source/drop", {"source": source})
    assert "Nothing to review" in page.visitor.get("/review").text


# --- recall


def test_recall_is_explained_as_the_command_explains_it(page: Page, run: Run) -> None:
    rows = run("recall", "--explain", "--json", "port of service 1").json()
    shown = words(page.visitor.get("/recall?q=port+of+service+1").text)
    assert rows
    for row in rows:
        assert f"{row['score']:.2f}" in shown
        for value in filter(None, row["why"].values()):
            assert f"{value:.2f}" in shown
    joined = sum(row["clear"] for row in rows)
    assert shown.count("would be injected") == joined
    assert f"Clear enough {joined} " in shown


# --- dream


def test_a_dream_is_looked_at_accepted_in_part_and_undone(page: Page, run: Run) -> None:
    text = "The freeze began." + "\n\nThe release waits for Rosa." * 2
    run("memory", "add", text, "--name", "Freeze", "--type", "project")
    with page.desk.memory_there() as memories:
        index = memories.folder.root / "MEMORY.md"
        index.write_text(index.read_text() + "- [x](x.md)\n")
    run("dream", "run", "--dry-run")
    found = run("dream", "diff", "--json").json()
    files = [one["file"] for one in found["files"]]
    assert files
    page.look()
    shown = page.visitor.get("/dream").text
    assert "A dream waits for you" in shown
    listed = re.findall(r'name="file" value="([^"]+)"', shown)
    assert sorted(listed) == sorted(files)
    assert listed[-1] == "MEMORY.md"
    assert "No file is ticked" in page.visitor.post(f"/dream/{found['dream']}/accept").text
    topic = next(one for one in files if one != "MEMORY.md")
    none = page.visitor.post(f"/dream/{found['dream']}/accept", {})
    assert none.status == 400
    landed = page.visitor.post(f"/dream/{found['dream']}/accept", {"file": [topic]})
    assert landed.status == 303
    done = run("dream", "status", "--json").json()["dreams"][0]
    assert (done["status"], done["changed"]) == ("completed", [topic])
    assert "What it changed" in page.visitor.get(f"/dream/{found['dream']}").text
    assert page.visitor.post(f"/dream/{found['dream']}/undo", {}).status == 303
    assert run("dream", "status", "--json").json()["dreams"][0]["status"] == "undone"
    assert "undone" in page.visitor.get("/dream").text


def test_when_the_next_dream_is_due_is_said_as_people_say_it(page: Page, run: Run) -> None:
    run("dream", "run")
    assert run("dream", "status", "--json").json()["next"] == "the next is due in 24 hours"
    page.look()
    assert "The next is due in 24 hours" in page.visitor.get("/dream").text


def test_ages_are_words() -> None:
    now = time.time()
    told = [ago(now - n) for n in (0, 60, 7_200, 86_400, 40 * 86_400)]
    assert told[:4] == ["now", "1 min ago", "2 hours ago", "1 day ago"]
    assert re.fullmatch(r"\d+ \w+ \d{4}", told[4])


def test_what_was_dropped_can_be_put_back(page: Page, run: Run) -> None:
    (item,) = run("memory", "review", "list", "--json").json()["items"]
    done = page.visitor.post(f"/review/{item['id']}/drop")
    shown = page.visitor.get(done.headers["location"]).text
    assert "Nothing to review" in shown
    assert f"/review/{item['id']}/restore" in shown
    (dropped,) = run("memory", "review", "list", "--dropped", "--json").json()["items"]
    assert dropped["text"] == item["text"]
    page.visitor.post(f"/review/{item['id']}/restore")
    (again,) = run("memory", "review", "list", "--json").json()["items"]
    assert (again["id"], again["text"], again["evidence"]) == (
        item["id"],
        item["text"],
        item["evidence"],
    )
    assert run("memory", "review", "list", "--dropped", "--json").json()["items"] == []
    assert page.visitor.post(f"/review/{item['id']}/restore").status == 404


def test_recall_is_up_to_date_and_reads_no_folder_twice_where_that_is_slow(
    page: Page, run: Run
) -> None:
    ask = "/recall?q=the+port+of+service+1"
    first = words(page.visitor.get(ask).text)
    told = run("recall", "the port of service 1", "--explain", "--json").json()
    assert told[0]["name"] in first
    index = page.desk.open_memory.index
    index._now, index._took = lambda: 0.0, 0.0  # a machine that is never busy
    refreshed: list[int] = []
    refresh = index.refresh
    index.refresh = lambda: refreshed.append(1) or refresh()  # type: ignore[method-assign]
    page.visitor.get(ask)
    assert len(refreshed) == 1  # a small folder is looked at each time
    index._took = 9.0
    page.visitor.get(ask)
    assert len(refreshed) == 1
    run("memory", "add", "The zebra gateway listens on port 9911.", "--name", "Zebra gateway")
    page.look()  # beside it
    assert len(refreshed) == 2
    assert "Zebra gateway" in words(page.visitor.get("/recall?q=zebra+gateway+port").text)


def test_a_recall_index_deleted_under_the_page_is_made_again(page: Page) -> None:
    ask = "/recall?q=the+port+of+service+1"
    assert "Port of service 1" in words(page.visitor.get(ask).text)
    index = page.desk.open_memory.index
    index._took = 9.0
    for file in index.transcripts.glob("recall*"):
        file.unlink()
    assert "Port of service 1" in words(page.visitor.get(ask).text)
