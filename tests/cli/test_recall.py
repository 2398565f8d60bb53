"""`reverie recall` and `reverie ask`: found, explained, quoted with sources, or not known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from reverie.http_server import serving
from reverie.session import SessionLibrary
from reverie.store import canonical_root, find_project_folder
from reverie.transcript import Candidate

from .conftest import Run, injecting, memory_in, one_turn

pytestmark = [pytest.mark.spec("B2")]


def put(home: Path, project: Path, key: str, text: str) -> Path:
    folder = memory_in(home, project)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / key).write_text(text)
    return folder


@pytest.fixture
def filled(home: Path, project: Path) -> Path:
    put(home, project, "deploys.md",
        "---\nname: Billing deploys\ndescription: when the billing service is deployed\n"
        "type: project\n---\n\nThe billing service is deployed on Fridays after lunch.\n"
        "\n**Why:** the auditors are there. See `src/ship.py` and `src/gone.py`.\n")  # fmt: skip
    for n in range(12):
        put(
            home, project, f"bed_{n}.md", f"---\nname: bed {n}\n---\n\nTulip bed {n} needs water.\n"
        )
    return put(home, project, "style.md",
               "---\nname: Style\ndescription: how code is written\ntype: feedback\n---\n\n"
               "Prefer short functions.\n")  # fmt: skip


# --- recall


def test_a_memory_just_added_is_told_with_its_age(run: Run) -> None:
    """The history knows, also where a file and its index were written in the same second."""
    run("memory", "add", "Releases are tagged on Fridays", code=0)
    assert "saved today" in run("recall", "when are releases tagged?", code=0).out


def test_a_list_best_first(run: Run, filled: Path) -> None:
    rows = run("recall", "when is the billing service deployed", "--json").json()
    assert isinstance(rows, list)
    assert rows[0]["file"] == "deploys.md"
    assert rows[0]["clear"] is True
    assert rows[0]["path"] == str(filled / "deploys.md")
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert {"file", "score", "type", "name", "description", "passage", "line"} <= set(rows[0])
    shown = run("recall", "when", "is", "the", "billing", "service", "deployed", code=0).out
    assert shown.startswith("1. deploys.md")
    assert "why:" not in shown


def test_k_bounds_the_list(run: Run, filled: Path) -> None:
    assert len(run("recall", "tulip bed water", "-k", "3", "--json").json()) == 3
    assert len(run("recall", "tulip bed water", "-k", "50", "--json").json()) == 12
    assert run("recall", "tulip", "-k", "0").code != 0


@pytest.mark.needs("git")
def test_explain_says_why_and_checks_the_repository(run: Run, home: Path, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "src").mkdir()
    (project / "src" / "ship.py").write_text("x = 1\n")
    put(home, project, "deploys.md", "---\nname: Billing deploys\n---\n\n"
        "Deployed by `src/ship.py`, once by `src/gone.py`.\n")  # fmt: skip
    (row,) = run("recall", "billing deploys", "--explain", "--json").json()
    assert row["why"]
    assert all(isinstance(value, float | int) for value in row["why"].values())
    told = {c["text"]: c["status"] for c in row["checked"]}
    assert told == {"src/ship.py": "present", "src/gone.py": "gone"}
    shown = run("recall", "billing deploys", "--explain", code=0).out
    assert "path src/gone.py: gone" in shown
    assert "why: " in shown


@pytest.mark.parametrize(
    "query",
    ["quantum chess", "the of and is", "👍🎉", "'; DROP TABLE note; --", '"', "a AND NOT (b OR"],
)
def test_nothing_found_is_an_empty_list(run: Run, filled: Path, query: str) -> None:
    assert run("recall", query, "--json").json() == []
    assert "Nothing found" in run("recall", query, code=0).out


def test_a_query_from_stdin(process: Run, filled: Path) -> None:
    rows = process("recall", "-", "--json", input="billing service " * 50_000).json()
    assert rows[0]["file"] == "deploys.md"


def test_an_empty_query_is_refused(run: Run, filled: Path) -> None:
    assert run("recall", "--json").error["what"] == "The query is empty"
    assert run("recall", " ").code != 0


def test_looking_where_there_is_nothing_makes_nothing(run: Run, home: Path) -> None:
    assert run("recall", "anything at all", "--json").json() == []
    assert run("ask", "anything at all?", "--json").json()["known"] is False
    assert not home.exists()


# --- by meaning

KINDS = (("car", "vehicle", "automobile"), ("dog", "hound"), ("tax", "levy"))


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """A server of vectors: one number for each kind of thing that a text speaks of."""
    asked: list[list[str]] = []

    async def embed(request: Request) -> JSONResponse:
        texts = (await request.json())["input"]
        asked.append(texts)
        rows = [
            {"index": n, "embedding": [*(sum(w in text.lower() for w in k) for k in KINDS), 1]}
            for n, text in enumerate(texts)
        ]
        return JSONResponse({"data": rows})

    with serving(Starlette(routes=[Route("/v1/embeddings", embed, methods=["POST"])])) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("REVERIE_EMBEDDING_MODEL", "openai:small")
        yield asked


def test_a_model_of_vectors_finds_other_words(
    run: Run, home: Path, project: Path, vectors: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in ("automobile", "hound", "levy"):
        put(home, project, f"{word}.md", f"---\nname: {word}\n---\n\nWhat to know of the {word}.\n")
    found = run("recall", "where did I park my car", "--explain", "--json").json()
    assert found[0]["file"] == "automobile.md"
    assert found[0]["why"]["meaning"] > 1
    assert [len(texts) for texts in vectors] == [3, 1]
    run("recall", "my vehicle", code=0)
    assert [len(texts) for texts in vectors] == [3, 1, 1], "a memory gets its vector once"
    monkeypatch.delenv("REVERIE_EMBEDDING_MODEL")
    assert run("recall", "where did I park my car", "--json").json() == []
    assert len(vectors) == 3


def test_without_an_answer_words_alone_count(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_EMBEDDING_MODEL", "small")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = run("recall", "when is the billing service deployed", "--json", code=0)
    assert done.json()[0]["file"] == "deploys.md"
    assert "Searched by words only" in done.err


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("small", "no key for OpenAI"),
        ("anthropic:claude-sonnet-5", "gives no vectors"),
        ("ollama:", "no model"),
    ],
)
def test_a_model_that_cannot_be_had_is_an_error(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    for key in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("REVERIE_EMBEDDING_MODEL", name)
    assert what in run("recall", "billing service", "--json").error["what"]


def test_a_missing_extra_is_named(run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("REVERIE_EMBEDDING_MODEL", "ollama:small")
    error = run("recall", "billing service", "--json").error
    assert f"{sys.executable} -m pip install 'reverie[openai]'" in error["do"]


# --- the ledger


def test_the_ledger_of_a_session(run: Run, home: Path, project: Path) -> None:
    left = Candidate("style.md", 0.1, "left", "not clearly about it")
    recall = injecting("deploys.md", "On Fridays, by ship_it_now.", 14, left)
    session = one_turn(project, "When is billing deployed?", "Use ship_it_now on Friday.", recall)
    value = run("recall", "--ledger", "--json").json()
    assert value["session"] == session
    (turn,) = value["turns"]
    assert turn["considered"] == 14
    injected, left = turn["candidates"]
    assert (injected["outcome"], injected["cited"], injected["cited_by"]) == (
        *("injected", True),
        "ship_it_now",
    )
    assert (left["outcome"], left["cited"]) == ("left", False)
    shown = run("recall", "--ledger", session[:8], code=0).out
    assert "injected deploys.md 4.200" in shown
    assert "cited by “ship_it_now”" in shown
    assert run("recall", "--ledger", "ffffffff").code != 0


def test_the_ledger_of_a_session_without_recall(run: Run, project: Path, made: str) -> None:
    assert run("recall", "--ledger", made, "--json").json()["turns"] == []
    assert "Recall did nothing" in run("recall", "--ledger", code=0).out


# --- ask


def test_an_answer_from_memory_with_its_source(run: Run, filled: Path) -> None:
    value = run("ask", "When is the billing service deployed?", "--json").json()
    assert value["known"] is True
    assert "on Fridays after lunch" in value["answer"]
    source = value["sources"][0]
    assert (source["kind"], source["file"], source["line"]) == ("memory", "deploys.md", 7)
    assert source["text"] in (filled / "deploys.md").read_text()
    shown = run("ask", "When is the billing service deployed?", code=0).out
    assert "on Fridays after lunch" in shown
    assert "deploys.md:7, saved" in shown


def test_an_answer_from_an_earlier_session(run: Run, home: Path, project: Path) -> None:
    said = "The staging database is called heron-7"
    session = one_turn(project, said, "I will remember that.")
    value = run("ask", "What is the staging database called?", "--json").json()
    assert "heron-7" in value["answer"]
    source = value["sources"][0]
    assert (source["kind"], source["session"]) == ("transcript", session)
    folder = find_project_folder(home, canonical_root(project))
    ids = [e.id for e in SessionLibrary(folder, folder).read(session).entries]
    assert source["message"] in ids
    without = run("ask", "What is the staging database called?", "--no-sessions", "--json")
    assert without.json()["known"] is False


@pytest.mark.parametrize(
    "question",
    [
        "What is the airspeed velocity of a swallow?",
        "When is the payroll service retired?",
        "what is it",
        "👍?",
        "'; DROP TABLE note; --",
    ],
)
def test_what_is_not_known_is_said(run: Run, filled: Path, question: str) -> None:
    value = run("ask", question, "--json").json()
    assert value["known"] is False
    assert value["sources"] == []
    assert "I do not know" in run("ask", question, code=0).out


def test_a_question_asked_before_is_no_answer(run: Run, home: Path, project: Path) -> None:
    one_turn(project, "What is the staging database called?", "That I cannot tell.")
    assert run("ask", "What is the staging database called?", "--json").json()["known"] is False


def test_chinese_is_answered_in_chinese(run: Run, home: Path, project: Path) -> None:
    put(
        home,
        project,
        "部署.md",
        "---\nname: 账单部署\n---\n\n账单服务每周五下午部署。花园周一浇水。\n",
    )
    value = run("ask", "账单服务什么时候部署？", "--json").json()
    assert value["answer"] == "账单服务每周五下午部署。"


def test_json_is_one_document_for_programs(process: Run, filled: Path) -> None:
    done = process("ask", "When is the billing service deployed?", "--json")
    assert json.loads(done.out)["known"] is True
    assert done.err == ""
