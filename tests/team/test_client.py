"""The client against a server that lies: nothing of it is taken, and no token goes elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from reverie.errors import InvalidInput
from reverie.team import Hostile, Offline, Permanent, TeamClient, sha256_of

from .conftest import Silent, answering

pytestmark = pytest.mark.spec("11.client")
Answer = Callable[[Silent], None]


@contextmanager
def liar(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything in one way; the tokens that it was sent."""
    tokens: list[str] = []

    class Handler(Silent):
        def get(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            answer(self)

    with answering(Handler) as url:
        yield url, tokens


def says(value: object, tag: str = '"n-1"', status: int = 200) -> Answer:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda to: to.say(data, tag, status)


def state(entries: dict[str, object], sums: dict[str, str] | None = None) -> dict[str, object]:
    found = sums or {key: sha256_of(str(text)) for key, text in entries.items()}
    return {"entries": entries, "checksums": found}


@pytest.mark.parametrize(
    "answer",
    [
        says(state({"../../.ssh/keys": "x"})),
        says(state({"/etc/x": "x"})),
        says(state({"a\\b": "x"})),
        says(state({"a%2e%2e": "x"})),
        says(state({"ﬁle.md": "x"})),
        says(state({"a.md": "x"}, {"a.md": sha256_of("y")})),
        says(state({"a.md": "x"}, {"a.md": "short"})),
        says(state({"a.md": "x"}, {"b.md": sha256_of("x")})),
        says(state({"a.md": 7}, {"a.md": sha256_of("7")})),
        says([]),
        says(b"{"),
        says(b"[" * 200_000),
        says(state({}), tag=""),
        says(state({}), tag="weak"),
        says(state({f"{n}.md": "" for n in range(50_000)})),
    ],
)
def test_row_53_what_breaks_a_rule_is_refused(answer: Answer) -> None:
    with liar(answer) as (url, _), pytest.raises(Hostile):
        TeamClient(url, "rvt_x", "acme/reader").state()


def test_row_53_a_redirect_is_not_followed_and_no_token_goes_there() -> None:
    with liar(says(state({}))) as (other, elsewhere):

        def away(to: Silent) -> None:
            to.send_response(301)
            to.send_header("Location", other)
            to.send_header("Content-Length", "0")
            to.end_headers()

        with liar(away) as (url, _), pytest.raises(Hostile, match="elsewhere"):
            TeamClient(url, "rvt_secret", "acme/reader").state()
        assert elsewhere == []


def test_row_53_an_endless_answer_is_left_at_its_limit() -> None:
    sent = 0

    def endless(to: Silent) -> None:
        nonlocal sent
        to.send_response(200)
        to.end_headers()
        piece = b" " * 65_536
        for _ in range(4_000):
            try:
                to.wfile.write(piece)
            except OSError:
                return
            sent += len(piece)

    with liar(endless) as (url, _):
        client = TeamClient(url, "rvt_x", "acme/reader")
        with pytest.raises(Hostile, match="bytes"):
            client.log()
    assert sent < 65_536 * 2_000


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Permanent), (403, Permanent), (404, Permanent), (429, Offline), (503, Offline)],
)
def test_errors_say_whether_trying_again_can_help(status: int, kind: type[Exception]) -> None:
    answer = says({"error": {"what": "no\u001b[31m"}}, status=status)
    with liar(answer) as (url, _), pytest.raises(kind) as error:
        TeamClient(url, "rvt_x", "acme/reader").hashes()
    assert "\u001b" not in str(error.value)
    assert "rvt_x" not in str(error.value)


def test_addresses_and_tokens_that_are_none() -> None:
    for url in ("ftp://x", "http://", "x", "https://me:secret@host", "https://host?x=1"):
        with pytest.raises(InvalidInput) as error:
            TeamClient(url, "rvt_x", "acme/reader")
        assert "secret" not in str(error.value).replace("me:secret@host", "")
    for token in ("a b", "a\nb", "ü"):
        with pytest.raises(InvalidInput):
            TeamClient("https://host", token, "acme/reader")
