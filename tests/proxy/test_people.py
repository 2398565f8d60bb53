"""Whose memory a request gets: a folder's, a person's, or none. Through the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import reverie
from reverie.testing import Provider, provider
from tests.proxy.clients import assistant, user
from tests.proxy.proxied import PATHS, READ, Through, proxied, standing

pytestmark = pytest.mark.spec("18.proxy")
FORMS = tuple(PATHS)
OPENING = "Good morning, I have a question about the walnut project"
ASK = "What do you know about the walnut allergy and the walnut house?"
FACTS = {"ada": "the walnut allergy of mine is severe", "bob": "the walnut house is 7 Elm Road"}
TOLD = {"ada": "allergy of mine", "bob": "7 Elm Road"}


def claude(person: str, *, older: bool = False) -> str:
    """What Claude Code sends as `user_id`, with a session of its own each time."""
    if older:
        return f"user_{person.encode().hex()}_account_{person}_session_{uuid4()}"
    ids = {"device_id": person.encode().hex(), "account_uuid": "", "session_id": str(uuid4())}
    return json.dumps(ids)


def named(member: str, value: str) -> dict[str, Any]:
    return {"metadata": {"user_id": value}} if member == "user_id" else {member: value}


class Talk:
    """One conversation of somebody's, in one format."""

    def __init__(
        self, proxy: Through, form: str, who: Mapping[str, Any], folder: Path | None = None
    ) -> None:
        self.proxy, self.form, self.who = proxy, form, who
        self.headers = {"authorization": "Bearer the-one-key"}
        self.headers |= {"x-reverie-project": str(folder)} if folder else {}
        self.said: list[Any] = []

    def says(self, text: str, *, stream: bool = False, session: str = "") -> str:
        """One request; gives what it was told to have been done."""
        self.said.append(user(text))
        key = "input" if self.form == "responses" else "messages"
        body = {"model": "claude-opus-5-5", "stream": stream, **self.who, key: self.said}
        if self.form == "messages":
            body |= {"max_tokens": 99, "tools": [READ]}
        headers = self.headers | ({"session-id": session} if session else {})
        found = self.proxy.post(PATHS[self.form], body, headers)
        assert found.status_code == 200, found.text
        self.said.append(assistant("Good."))
        return found.headers["x-reverie"]


def sent(upstream: Provider, since: int = 0) -> list[str]:
    return [json.dumps(one.messages) for one in upstream.requests[since:]]


PEOPLE = [
    *((form, "safety_identifier", "ada", "bob") for form in FORMS[1:]),
    ("chat", "user", "../../x", "../../y"),
    ("responses", "user", "\ud800", "\ud801"),
    ("messages", "user_id", "a" * 3_000, "a" * 2_999 + "b"),
    ("messages", "user_id", claude("ada"), claude("bob")),
    ("messages", "user_id", claude("ada", older=True), claude("bob", older=True)),
    ("chat", "user", "Ådа", "Åda"),
]


CASES = [
    (*one, folder)
    for one in PEOPLE
    for folder in (False, True)
    if not (folder and "session_" in one[2])
]  # Claude Code in a folder has the folder's memory: a test below


@pytest.mark.parametrize(
    ("form", "member", "ada", "bob", "folder"),
    CASES,
    ids=[f"{c[0]}-{c[2][:12]!a}-{c[4]}" for c in CASES],
)
def test_people_behind_one_key_have_a_memory_each(
    home: Path, tmp_path: Path, form: str, member: str, ada: str, bob: str, folder: bool
) -> None:
    """With the same opening and the same answers, in turns, streamed and not."""
    people = {"ada": named(member, ada), "bob": named(member, bob)}
    shown: dict[str, list[str]] = {"ada": [], "bob": []}
    where = tmp_path if folder else None
    with provider(lambda body: "Good.") as upstream:
        for number in range(2):  # a proxy that is started again knows them apart too
            with proxied(home, upstream.anthropic_url) as proxy:
                talks = {name: Talk(proxy, form, who, where) for name, who in people.items()}
                for text in (f"{OPENING} {number}", "Please remember: {}.", ASK):
                    for name, talk in talks.items():
                        before = len(upstream.requests)
                        talk.says(text.format(FACTS[name]), stream=bool(number))
                        shown[name] += sent(upstream, before)
    assert not [one for one in shown["ada"] if TOLD["bob"] in one]
    assert not [one for one in shown["bob"] if TOLD["ada"] in one]
    for name in people:
        assert TOLD[name] in shown[name][3], "it is not told at the next conversation's opening"
    records = [path.read_text() for path in home.glob("projects/**/*.jsonl")]
    assert not [one for one in records if TOLD["ada"] in one and TOLD["bob"] in one]


def test_a_session_header_that_all_share_joins_nobody(home: Path) -> None:
    with standing(home) as (upstream, proxy):
        for name in ("ada", "bob"):
            talk = Talk(proxy, "messages", named("user_id", name))
            talk.says(f"Please remember: {FACTS[name]}.", session="the-one")
            talk.says(ASK, session="the-one")
    assert not [one for one in sent(upstream)[2:] if TOLD["ada"] in one]
    records = [path.read_text() for path in home.glob("projects/**/*.jsonl")]
    assert not [one for one in records if TOLD["ada"] in one and TOLD["bob"] in one]


@pytest.mark.parametrize("form", FORMS)
def test_where_neither_folder_nor_person_is_known_nothing_is_told_or_learned(
    home: Path, form: str, tmp_path: Path
) -> None:
    with provider(lambda body: "Good.") as upstream:
        with proxied(home, upstream.anthropic_url) as proxy:
            told = Talk(proxy, form, {}).says(f"Please remember: {FACTS['ada']}.")
        assert told.endswith("memory=none")
        assert not [p for p in home.rglob("*.md") if TOLD["ada"] in p.read_text()]
        (place,) = (home / "proxy" / "keys").iterdir()  # as it was used before
        with reverie.Memory(place, home=home) as memory:
            memory.add(FACTS["ada"])
        with proxied(home, upstream.anthropic_url) as proxy:
            Talk(proxy, form, {}).says(ASK)
            Talk(proxy, form, {}).says(ASK)
    assert not [one for one in sent(upstream)[1:] if TOLD["ada"] in one]
    assert [p for p in home.rglob("*.md") if TOLD["ada"] in p.read_text()]
    command = [Path(sys.executable).parent / "reverie", "doctor", "--json"]
    environ = {**os.environ, "REVERIE_HOME": str(home)}
    told = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False)
    found = json.loads(told.stdout)
    notes = [check["what"] for check in found["checks"] if check["name"] == "keys"]
    assert len(notes) == 1
    assert notes[0].startswith("1 memory ")
    assert str(home / "projects") in notes[0]


@pytest.mark.parametrize(
    "who",
    [{}, named("user_id", claude("me")), named("user_id", claude("me", older=True))],
    ids=["nobody", "claude-code", "older-claude-code"],
)
def test_a_client_on_its_users_own_machine_keeps_the_memory_of_the_folder(
    home: Path, tmp_path: Path, who: Mapping[str, Any]
) -> None:
    with reverie.Memory(tmp_path, home=home) as memory:
        memory.add(FACTS["ada"])
    with standing(home) as (upstream, proxy):
        Talk(proxy, "messages", who, tmp_path).says(ASK)
        other = Talk(proxy, "messages", named("user_id", "eve"), tmp_path)
        other.says(ASK)
    mine, eves = sent(upstream)
    assert TOLD["ada"] in mine
    assert TOLD["ada"] not in eves


def test_a_persons_memory_in_a_folder_is_the_one_of_that_user(home: Path, tmp_path: Path) -> None:
    with reverie.Memory(tmp_path, user="ada", home=home) as memory:
        memory.add(FACTS["ada"])
    with standing(home) as (upstream, proxy):
        Talk(proxy, "chat", {"user": "ada"}, tmp_path).says(ASK)
    assert TOLD["ada"] in sent(upstream)[0]


def test_no_header_leads_into_the_memory_of_another(home: Path, tmp_path: Path) -> None:
    with standing(home) as (upstream, proxy):
        Talk(proxy, "chat", {"user": "ada"}, tmp_path).says(f"Please remember: {FACTS['ada']}.")
        Talk(proxy, "chat", {"user": "ada"}, tmp_path).says(OPENING)
        (place,) = home.glob("projects/*/users/*")
        Talk(proxy, "chat", {}, place).says(ASK)
    assert TOLD["ada"] in sent(upstream)[1]
    assert TOLD["ada"] not in sent(upstream)[2]


@pytest.mark.parametrize("how", ["body", "header"])
def test_no_request_of_forty_carries_the_words_of_another(home: Path, how: str) -> None:
    """Two people behind one key, in three formats in turns, with texts in place of lists too."""
    members = {"messages": "user_id", "chat": "user", "responses": "safety_identifier"}
    count, told = 0, {"ada": 0, "bob": 0}
    with standing(home) as (upstream, proxy):
        for number, text in enumerate(("Please remember: {}.", OPENING, ASK, ASK, ASK)):
            for form in FORMS:
                for name, other in (("ada", "bob"), ("bob", "ada")):
                    who = named(members[form], name) if how == "body" else {}
                    talk = Talk(proxy, form, who)
                    talk.headers |= {"x-reverie-user": name} if how == "header" else {}
                    talk.says(f"{text.format(FACTS[name])} ({form} {number})")
                    if form == "responses":
                        said = {"model": "gpt-5.6", "input": f"{ASK} (text {number})", **who}
                        assert proxy.post(PATHS[form], said, talk.headers).status_code == 200
                    seen = sent(upstream, count)
                    count += len(seen)
                    assert not [one for one in seen if TOLD[other] in one]
                    told[name] += sum(TOLD[name] in one for one in seen) if number > 1 else 0
    assert count == 40
    assert told == {"ada": 12, "bob": 12}, "also where a text stands for the list"
