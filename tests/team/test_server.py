"""The team server over a real port: conditions, tokens, tenants, bad bodies, both paths."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from reverie.http_server import listen
from reverie.team import BODY_BYTES, TeamStore, sha256_of, write_backup

from .conftest import PATH, REPO, Talk

pytestmark = pytest.mark.spec("11.server")


@pytest.fixture
def talk(store: TeamStore, url: str) -> Iterator[Talk]:
    text, _ = store.create_token(org="acme", repo=REPO, author="ines")
    made = Talk(url, text)
    yield made
    made.http.close()


def test_what_is_put_is_got_with_its_tag(talk: Talk) -> None:
    empty = talk.get()
    assert empty.json() == {
        "checksums": {},
        "tombstones": {},
        "authors": {},
        "entries": {},
        "etag": '"0"',
    }
    done = talk.put({"entries": {"a.md": "x — ü 😀"}}, empty.headers["etag"])
    assert done.status_code == 200
    got = talk.get()
    assert got.json()["entries"] == {"a.md": "x — ü 😀"}
    assert got.json()["checksums"] == {"a.md": sha256_of("x — ü 😀")}
    assert got.headers["etag"] == done.headers["etag"] == got.json()["etag"]
    assert "entries" not in talk.get("&view=hashes").json()
    same = talk.get("", **{"If-None-Match": got.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert talk.get("", **{"If-None-Match": 'W/"x", "y"'}).status_code == 200
    assert talk.get("&view=all").status_code == 400


def test_the_path_of_the_write_ups_is_served_too(talk: Talk) -> None:
    talk.put({"entries": {"a.md": "x"}}, '"0"')
    found = talk.http.get(f"/api/claude_code/team_memory?repo={REPO}")
    assert found.json()["entries"] == {"a.md": "x"}


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        (None, 428),
        ("*", 400),
        ('W/"0"', 400),
        ('"0", "1"', 400),
        ("0", 400),
        ('"', 400),
        ('""', 400),
        ('"stale-9"', 412),
        ('"x-' + "9" * 90 + '"', 412),
    ],
)
def test_row_43_conditions_that_are_not_one_strong_tag(
    talk: Talk, tag: str | None, status: int
) -> None:
    assert talk.put({"entries": {"a.md": "x"}}, tag).status_code == status
    assert talk.get().json()["entries"] == {}


def test_row_43_a_condition_given_twice_is_none(talk: Talk, url: str) -> None:
    body = json.dumps({"entries": {"a.md": "x"}})
    twice = f'If-Match: "0"\r\nIf-Match: "0"\r\nContent-Length: {len(body)}\r\n\r\n{body}'
    assert b" 400 " in put_raw(talk, url, twice)


def put_raw(talk: Talk, url: str, rest: str) -> bytes:
    """Put with the rest of the headers and the body as they are; what comes back."""
    host, port = urlsplit(url).netloc.split(":")
    head = (
        f"PUT {PATH}?repo={REPO} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Authorization: {talk.http.headers['authorization']}\r\nConnection: close\r\n"
    )
    return said(host, int(port), f"{head}{rest}".encode())


def said(host: str, port: int, raw: bytes) -> bytes:
    with socket.create_connection((host, port), timeout=20) as link:
        link.sendall(raw)
        found = b""
        while piece := link.recv(65536):
            found += piece
    return found


def test_row_45_a_put_sent_again_changes_nothing_more(talk: Talk) -> None:
    body = {"entries": {"a.md": "x"}}
    assert talk.put(body, '"0"').status_code == 200
    again = talk.put(body, '"0"')
    assert again.status_code == 412
    assert talk.get("&view=hashes").json()["checksums"] == {"a.md": sha256_of("x")}


@pytest.mark.parametrize("wrong", ["0" * 64, sha256_of("x").upper(), sha256_of("x")[:-1], 7])
def test_row_46_checksums_must_fit(talk: Talk, wrong: object) -> None:
    body = {"entries": {"a.md": "x"}, "checksums": {"a.md": wrong}}
    assert talk.put(body, '"0"').status_code == 400
    assert talk.get().headers["etag"] == '"0"'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"entries": {}}',
        b"[" * 100_000,
        b'{"entries":' * 100_000,
        b'{"entries": {"a": "x", "a": "y"}}',
        b'{"entries": {"a": NaN}}',
        b'{"entries": {"a": "\xff"}}',
        b'{"entries": {"a": "\\ud800"}}',
        b'{"entries": {"a": "\\u0000"}}',
        b'{"entries": {"a": 1}}',
        b'{"entries": {"a": "x"}, "more": 1}',
        b'{"deleted": "a"}',
        b'{"deleted": ["a"]}',
        b'{"checksums": {"a": "x"}}',
        b'{"entries": {"../a": "x"}}',
    ],
)
def test_row_51_a_body_that_is_no_batch_is_refused(talk: Talk, body: bytes) -> None:
    assert talk.put(body, '"0"').status_code == 400
    assert talk.get().headers["etag"] == '"0"'


def test_row_51_bombs_floods_and_trickles(talk: Talk, url: str) -> None:
    host, port = urlsplit(url).netloc.split(":")
    bomb = gzip.compress(b" " * 10_000_000)
    headers = {"If-Match": '"0"', "Content-Encoding": "gzip", "Content-Type": "application/json"}
    got = talk.http.put(f"{PATH}?repo={REPO}", content=bomb, headers=headers)
    assert got.status_code == 415
    assert talk.put(b" " * (BODY_BYTES + 1), '"0"').status_code == 413
    assert b" 408 " in put_raw(talk, url, 'If-Match: "0"\r\nContent-Length: 100\r\n\r\n{')
    assert said(host, int(port), b"GET / HTTP/1.1\r\nHost") == b""
    assert talk.get().status_code == 200


def test_row_52_two_lengths_are_refused_and_no_method_is_overridden(talk: Talk, url: str) -> None:
    two = 'If-Match: "0"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n'
    chunk = '17\r\n{"entries":{"a.md":"x"}}\r\n0\r\n\r\n'
    assert b" 400 " in put_raw(talk, url, two + chunk)[:20]
    override = {"X-HTTP-Method-Override": "PUT", "X-HTTP-Method": "DELETE"}
    assert talk.get(**override).status_code == 200
    assert talk.http.post(f"{PATH}?repo={REPO}").status_code == 405
    assert talk.http.delete(f"{PATH}?repo={REPO}").status_code == 405
    injected = talk.put({"entries": {"a\r\nSet-Cookie: x.md": "x"}}, '"0"')
    assert injected.status_code == 400
    assert "set-cookie" not in injected.headers


def test_row_41_without_a_good_token_nothing_is_said(
    talk: Talk, url: str, store: TeamStore
) -> None:
    good = talk.http.headers["authorization"]
    for given in (None, "", "Bearer", "Bearer x", good + "x", good.upper(), "Basic eA=="):
        headers = {} if given is None else {"Authorization": given}
        with httpx2.Client() as http:
            found = http.get(f"{url}{PATH}?repo={REPO}", headers=headers)
        assert found.status_code == 401
        assert found.headers["www-authenticate"] == "Bearer"
    text = good.split()[1]
    with httpx2.Client() as http:
        assert http.get(f"{url}{PATH}?repo={REPO}&token={text}").status_code == 401
    reader, _ = store.create_token(org="acme", repo=REPO, author="tom", writes=False)
    reading = Talk(url, reader)
    assert reading.get().status_code == 200
    assert reading.put({"entries": {"a.md": "x"}}, '"0"').status_code == 403
    reading.http.close()


def test_the_log_tells_who_and_a_version_what(talk: Talk) -> None:
    first = talk.put({"entries": {"a.md": "one"}}, '"0"').headers["etag"]
    talk.put({"entries": {"a.md": "two"}}, first)
    rows = talk.http.get(f"{PATH}/log?repo={REPO}&limit=1").json()["versions"]
    assert [(row["key"], row["version"], row["author"]) for row in rows] == [("a.md", 2, "ines")]
    old = talk.http.get(f"{PATH}/versions?repo={REPO}&key=a.md&version=1")
    assert old.json()["content"] == "one"
    assert talk.http.get(f"{PATH}/versions?repo={REPO}&key=a.md&version=x").status_code == 400
    assert talk.http.get(f"{PATH}/log?repo={REPO}&limit=0").status_code == 400
    for key in ("%00", "a%00.md", "%ff", "%ed%a0%80", "x" * 5_000):
        odd = talk.http.get(f"{PATH}/versions?repo={REPO}&key={key}&version=1")
        assert odd.status_code == 404, key


def test_health_figures_and_the_document_need_no_token(talk: Talk, url: str) -> None:
    talk.get()
    with httpx2.Client(base_url=url) as http:
        assert http.get("/health").json()["status"] == "up"
        assert 'requests_total{method="GET",status="200"} 1' in http.get("/metrics").text
        assert http.get("/openapi.json").json()["openapi"] == "3.1.0"
        assert http.get("/nothing").status_code == 404
    assert REPO not in talk.http.get("/metrics").text


def test_too_many_writes_are_told_when_to_come_back(talk: Talk) -> None:
    tag = '"0"'
    for n in range(20):
        tag = talk.put({"entries": {"a.md": str(n)}}, tag).headers["etag"]
    late = talk.put({"entries": {"a.md": "x"}}, tag)
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) >= 1


def test_writes_that_are_refused_count_too(talk: Talk) -> None:
    """Else a client whose tag is always stale may ask the database as often as it likes."""
    assert talk.put({"entries": {"a.md": "1"}}, '"0"').status_code == 200
    found = [talk.put({"entries": {"a.md": "x"}}, '"stale-9"').status_code for _ in range(60)]
    assert found[0] == 412
    assert 429 in found


@pytest.mark.spec("11.refused")
def test_what_is_refused_is_kept_by_token_and_never_a_word_of_it(
    talk: Talk, url: str, store: TeamStore, tmp_path: Path
) -> None:
    text = "the words of a memory"
    mine = talk.http.headers["authorization"].split("_")
    reader = Talk(url, store.create_token(org="acme", repo=REPO, author="tom", writes=False)[0])
    lead = Talk(url, store.create_token(org="acme", repo="*", author="lead")[0])
    wrong = Talk(url, f"rvt_{mine[1]}_{'x' * 43}")
    nobody = Talk(url, f"rvt_{'0' * 12}_{'y' * 43}")
    talk.put({"entries": {"a.md": text}}, '"stale-1"')
    talk.put(b" " * (BODY_BYTES + 1), '"0"')
    talk.put({"entries": {"../a.md": text}}, '"0"')
    talk.get(repo="zeta/secret")
    reader.put({"entries": {"a.md": text}}, '"0"')
    wrong.get()
    nobody.get()

    def seen(one: Talk) -> list[tuple[str, int, str]]:
        rows = one.http.get(f"{PATH}/refused?repo={REPO}").json()["refused"]
        return sorted((row["author"], row["status"], row["repo"]) for row in rows)

    own = [("ines", 400, REPO), ("ines", 401, ""), ("ines", 404, "")]
    own += [("ines", 412, REPO), ("ines", 413, REPO)]
    assert seen(talk) == own
    assert seen(reader) == [("tom", 403, REPO)]
    assert seen(lead) == [*own, ("tom", 403, REPO)]
    assert [one.status for one in store.all_refusals() if not one.token] == [401]
    everything = tmp_path / "everything.jsonl"
    write_backup(store.database, everything)
    kept = everything.read_text("utf-8")
    for word in (text, "zeta", mine[2], "x" * 43, "y" * 43, "0" * 12):
        assert word not in kept.replace(sha256_of(""), "")
    for one in (reader, lead, wrong, nobody):
        one.http.close()


async def test_an_answer_does_not_wait_for_more_to_send() -> None:
    """With Nagle's algorithm on, the second piece of every answer waits for 40 ms."""
    accepted: list[bool] = []

    def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = writer.get_extra_info("socket")
        accepted.append(bool(link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        writer.close()

    listening = listen("127.0.0.1", 0)
    async with await asyncio.start_server(look, sock=listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        await reader.read()
        writer.close()
    assert accepted == [True]
